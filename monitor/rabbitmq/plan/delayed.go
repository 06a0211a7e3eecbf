package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"curfew/monitor/rabbitmq/cluster"
)

// delayedType is the type of the exchanges of the delayed-message plugin.
const delayedType = "x-delayed-message"

// DelayedExchange is one for a virtual host that has none yet.
type DelayedExchange struct{ VHost, Name, Type string }

// NowSuffix ends the name of the exchange behind a delayed one, to which consumers bind.
const NowSuffix = ".now"

// mostUndelivered is how many of the messages that lead nowhere are kept, the newest.
const mostUndelivered = 100_000

// Delayed rewrites definitions for delay queues: in place of each exchange of the plugin, foo, there are an exchange foo of type headers, an exchange
// foo.now of its own type, to which its bindings move, a queue foo.delay and the policies that lead from one to the other. What leads nowhere goes to the
// alternate exchange that foo had, or to a queue foo.undelivered. Everything else stays. The binding between foo and foo.delay is Curfew's: JSON cannot
// express it. in may be nil; more are added to what it has. Notes are for the operator.
func Delayed(w io.Writer, in io.Reader, more []DelayedExchange, s cluster.Server) (notes []string, err error) {
	d := definitions{all: object{}, family: s.Family()}
	if d.family == cluster.UnknownFamily {
		return nil, fmt.Errorf("%s: Curfew delays messages of RabbitMQ 3.10 and later", s)
	}
	if in != nil {
		decoder := json.NewDecoder(in)
		decoder.UseNumber()
		if err := decoder.Decode(&d.all); err != nil {
			return nil, fmt.Errorf("the definitions are not a JSON object: %w", err)
		}
	}
	if d.family != cluster.Family3 {
		d.dropMirroring()
	}
	for _, x := range more {
		d.add("exchanges", object{"vhost": x.VHost, "name": x.Name, "type": delayedType, "durable": true, "auto_delete": false, "internal": false, "arguments": object{"x-delayed-type": x.Type}})
	}
	found := 0
	for _, x := range d.list("exchanges") {
		if x["type"] == delayedType {
			found++
			if err := d.split(x); err != nil {
				return nil, err
			}
		}
	}
	if found == 0 {
		return nil, errors.New("the definitions have no exchange of type x-delayed-message")
	}
	if in != nil {
		d.note("The plugin's own messages are in no definitions: move publishers first, and stop the old node when its messages_delayed is 0.")
	}
	return d.Notes, d.write(w)
}

// dropMirroring takes out of policies what RabbitMQ 4 refuses, and the rest of the file with it.
func (d *definitions) dropMirroring() {
	var rest []any
	for _, p := range d.list("policies") {
		set, mirrored := setBy(p), false
		for key := range set {
			if strings.HasPrefix(key, "ha-") {
				delete(set, key)
				mirrored = true
			}
		}
		if mirrored {
			d.note("Policy %v mirrored classic queues, which RabbitMQ 4 does not: its keys ha-... are left out. Make quorum queues of those that must survive a node.", p["name"])
		}
		if !mirrored || len(set) > 0 {
			rest = append(rest, p)
		}
	}
	if len(rest) > 0 || d.all["policies"] != nil {
		d.all["policies"] = rest
	}
}

// definitions are those of RabbitMQ, as JSON.
type definitions struct {
	all    object
	family cluster.Family
	Notes  []string // for the operator
}

// note adds a note for the operator, once.
func (d *definitions) note(format string, a ...any) {
	if text := fmt.Sprintf(format, a...); !slices.Contains(d.Notes, text) {
		d.Notes = append(d.Notes, text)
	}
}

// write writes them for an import.
func (d *definitions) write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(d.all)
}

// list returns the objects of one kind.
func (d *definitions) list(kind string) (all []object) {
	entries, _ := d.all[kind].([]any)
	for _, one := range entries {
		if o, ok := one.(object); ok {
			all = append(all, o)
		}
	}
	return all
}

func (d *definitions) add(kind string, o object) {
	entries, _ := d.all[kind].([]any)
	d.all[kind] = append(entries, o)
}

// named returns the object of one kind with a name in a virtual host; nil: there is none.
func (d *definitions) named(kind string, vhost any, name string) object {
	for _, o := range d.list(kind) {
		if o["name"] == name && o["vhost"] == vhost {
			return o
		}
	}
	return nil
}

// split puts two exchanges and a queue where an exchange of the plugin was.
func (d *definitions) split(x object) error {
	name, _ := x["name"].(string)
	now, queue := name+NowSuffix, name+cluster.DelaySuffix
	arguments, _ := x["arguments"].(object)
	kind, _ := arguments["x-delayed-type"].(string)
	if kind == "" {
		return fmt.Errorf("exchange %s has no x-delayed-type", name)
	}
	if d.named("exchanges", x["vhost"], now) != nil || d.named("queues", x["vhost"], queue) != nil {
		return fmt.Errorf("there is an exchange %s or a queue %s already: rename it first", now, queue)
	}
	behind, second := maps.Clone(arguments), maps.Clone(x)
	delete(behind, "x-delayed-type")
	second["name"], second["type"], second["arguments"] = now, kind, behind
	x["type"], x["arguments"] = "headers", object{}
	d.add("exchanges", second)
	for _, b := range d.list("bindings") {
		if b["source"] == name && b["vhost"] == x["vhost"] {
			b["source"] = now
		}
	}
	for _, p := range d.list("topic_permissions") {
		if p["exchange"] == name && p["vhost"] == x["vhost"] {
			p["exchange"] = now
			d.note("Topic permissions on %s are on %s now, where RabbitMQ asks for them when somebody binds a queue. It asks no publisher for them any more.", name, now)
		}
	}
	alternate := setBy(d.governing(x, name, "exchanges"))["alternate-exchange"]
	d.addFor(x, "queues", object{"name": queue, "durable": true, "auto_delete": false, "arguments": object{"x-queue-type": "quorum"}})
	d.addFor(x, "policies", d.policyFor(x, name, "exchanges", object{"alternate-exchange": now}))
	d.addFor(x, "policies", d.policyFor(x, queue, "queues", waiting(d.family, now)))
	if behind["alternate-exchange"] == nil {
		if alternate == nil {
			alternate = d.catchAll(x, name+cluster.UndeliveredSuffix)
		}
		d.addFor(x, "policies", d.policyFor(x, now, "exchanges", object{"alternate-exchange": alternate}))
	}
	if x["auto_delete"] == true || x["durable"] == false {
		d.note("Exchanges %s and %s are auto-delete or not durable, as %s was. When one of them is gone, messages are not delayed or are not delivered: make both durable and not auto-delete, here and in the applications.", name, now, name)
	}
	d.note("%s: publishers stay as they are, unless they declare it: it has the type headers now, and no arguments. Consumers bind to %s. A queue that is bound to %s itself gets every message at once, so grant consumers read on %s only.", name, now, name, now)
	return nil
}

// catchAll adds an exchange and a queue of that name, which gets all that the exchange does.
func (d *definitions) catchAll(x object, name string) string {
	d.addFor(x, "exchanges", object{"name": name, "type": "fanout", "durable": true, "auto_delete": false, "internal": false, "arguments": object{}})
	d.addFor(x, "queues", object{"name": name, "durable": true, "auto_delete": false, "arguments": object{"x-queue-type": "quorum", "x-max-length": mostUndelivered}})
	d.addFor(x, "bindings", object{"source": name, "destination": name, "destination_type": "queue", "routing_key": "", "arguments": object{}})
	return name
}

// addFor adds what belongs to the virtual host of an exchange.
func (d *definitions) addFor(x object, kind string, o object) {
	if vhost, has := x["vhost"]; has {
		o["vhost"] = vhost
	}
	d.add(kind, o)
}

// priority is that of a policy.
func priority(p object) float64 {
	n, _ := p["priority"].(json.Number)
	value, _ := n.Float64()
	return value
}

// setBy is what a policy defines; nil: nothing.
func setBy(p object) object {
	definition, _ := p["definition"].(object)
	return definition
}

// governing is the policy that applies to a name in the virtual host of an exchange; nil: none does.
func (d *definitions) governing(x object, name, applyTo string) (last object) {
	for _, p := range d.list("policies") {
		pattern, _ := p["pattern"].(string)
		matches, err := regexp.MatchString(pattern, name)
		if p["vhost"] == x["vhost"] && slices.Contains([]any{"all", applyTo}, p["apply-to"]) && (matches || err != nil) && (last == nil || priority(p) > priority(last)) {
			last = p
		}
	}
	return last
}

// policyFor is a policy for one name, above all others that match. Only one applies, so it repeats what that of an exchange says about federation. Its
// alternate-exchange goes to the one behind; other keys are of queues, or of a plugin, whose loss is noted. No policy has applied yet to what is new.
func (d *definitions) policyFor(x object, name, applyTo string, definition object) object {
	highest, last := 0, d.governing(x, name, applyTo)
	if last != nil {
		highest = int(priority(last)) + 1
	}
	if last != nil && applyTo == "exchanges" {
		var left []string
		for _, key := range slices.Sorted(maps.Keys(setBy(last))) {
			if strings.HasPrefix(key, "federation") {
				definition[key] = setBy(last)[key]
			} else if last["apply-to"] == applyTo && key != "alternate-exchange" {
				left = append(left, key)
			}
		}
		if len(left) > 0 {
			d.note("Policy %v no longer applies to %s, since curfew.%s does, which does not repeat %s.", last["name"], name, name, strings.Join(left, ", "))
		}
	}
	return object{"name": "curfew." + name, "pattern": "^" + regexp.QuoteMeta(name) + "$", "apply-to": applyTo, "priority": highest, "definition": definition}
}

// waiting is the policy of a quorum queue in which messages only wait, and then go to an exchange.
func waiting(f cluster.Family, exchange string) object {
	definition := object{"dead-letter-exchange": exchange, "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}
	if f != cluster.Family3 {
		definition["delivery-limit"] = -1
	}
	if f == cluster.Family43 {
		definition[disconnectedTimeout] = lostNode
	}
	return definition
}
