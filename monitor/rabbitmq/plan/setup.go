package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// Setup is what an operator sets up in RabbitMQ: definitions to import. For the gateway, the notes that begin with InCurfew have the commands that declare
// what it needs in Curfew's own broker.
type Setup struct {
	definitions
	vhost, user string
	unbind      []cluster.Binding // last of all
}

// SetupOptions choose what is set up.
type SetupOptions struct {
	User string // of Curfew in RabbitMQ; "curfew" if empty
	// Gateway lists queues whose messages are to wait in Curfew.
	Gateway []string
	// Retry lists work queues whose rejected messages are to wait and come back, as the rule with mode retry says.
	Retry []string
	// CurfewURL is where RabbitMQ reaches Curfew's own broker (amqp or amqps, with user and
	// password); for the gateway only.
	CurfewURL string
}

const (
	// linkPrefetch bounds the messages that move to RabbitMQ before its consumers ask for
	// them: there they would wait in line again.
	linkPrefetch = 100
	// ownPriority is higher than that of most policies that people write; the new policy
	// repeats what theirs defined for the queue.
	ownPriority = 100
)

// Setup computes what to set up for the rules of the plan and the gateway.
func (p *Plan) Setup(o SetupOptions) (*Setup, error) {
	o.User = cmp.Or(o.User, "curfew")
	s := &Setup{definitions: definitions{all: object{}, family: p.inventory.Server.Family()}, vhost: p.VHost, user: o.User}
	if o.User != p.User { // without a hash nobody can log in with a password: rabbitmqctl change_password sets one
		s.note("This is for a new user %s. If there is one already, set its password again afterwards (rabbitmqctl change_password), or have the plan made with that user's CURFEW_PRIMARY_URL.", o.User)
		s.add("users", object{"name": o.User, "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": "monitoring"})
	}
	readable, writable, err := s.retry(p, o.Retry)
	if err != nil {
		return nil, err
	}
	s.permit(p, readable, writable)
	s.keepSoon(p)
	if len(o.Gateway) == 0 {
		return s, nil
	}
	address, err := withVHost(o.CurfewURL)
	if err != nil {
		return nil, fmt.Errorf("the gateway needs the URL at which RabbitMQ reaches Curfew: %w", err)
	}
	s.note("Before, enable rabbitmq_federation and rabbitmq_shovel on every node.")
	s.link("federation-upstream", upstreamName(p.VHost), object{"uri": address, "prefetch-count": linkPrefetch})
	for _, name := range o.Gateway {
		if err := s.gateway(p, name, address); err != nil {
			return nil, fmt.Errorf("gateway for queue %s: %w", name, err)
		}
	}
	return s, nil
}

// upstreamName differs by virtual host: when an upstream is set, RabbitMQ restarts the links of
// every upstream with that name, in any virtual host, and then delivers some messages twice.
func upstreamName(vhost string) string {
	if vhost == "/" {
		return "curfew"
	}
	return "curfew." + vhost
}

// withVHost adds the virtual host / to a URL that names none: RabbitMQ's plugins would take
// the name of the virtual host that they run in.
func withVHost(text string) (string, error) {
	a, err := cluster.ParseAddress(text)
	if err != nil {
		return "", err
	}
	if len(a.Nodes()) != 1 {
		return "", errors.New("it has to name one host")
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("it is not a URL")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path, u.RawPath = "//", "/%2F"
	}
	return u.String(), nil
}

// permit gives the user the permissions that observing and keeping need, and those on what is named, by names.
func (s *Setup) permit(p *Plan, readableToo, writableToo []string) {
	own := "^" + regexp.QuoteMeta(cluster.TapPrefix)
	taps := regexp.QuoteMeta(cluster.TapPrefix) + ".*"
	readable, writable := []string{taps}, []string{taps}
	for _, name := range readableToo {
		readable = append(readable, regexp.QuoteMeta(name))
	}
	for _, name := range writableToo {
		writable = append(writable, regexp.QuoteMeta(name))
	}
	for _, r := range p.watch {
		if !r.Mode.Holds() || !strings.ContainsAny(r.Pattern, "*?") || r.Pattern == "*" || r.VHost != "" && r.VHost != p.VHost {
			continue
		}
		readable = append(readable, cluster.Expression(r.Pattern)) // what is declared later, too
		if exchange := r.ExchangeOf(r.Pattern); r.Mode == cluster.Delay {
			writable = append(writable, cluster.Expression(r.Pattern), regexp.QuoteMeta("amq.default"))
			if exchange != "*" { // that would be every exchange
				readable = append(readable, cluster.Expression(exchange))
			}
		}
	}
	events := regexp.QuoteMeta("amq.rabbitmq.event")
	for _, r := range p.Rows {
		if r.kept {
			readable = append(readable, regexp.QuoteMeta(r.Queue))
		}
		if r.delayed != "" { // to bind it, and to answer commands
			readable = append(readable, regexp.QuoteMeta(r.delayed))
			writable = append(writable, regexp.QuoteMeta(r.Queue), regexp.QuoteMeta("amq.default"))
		}
		if r.observed {
			for _, b := range p.bindings {
				if b.Queue == r.Queue {
					readable = append(readable, regexp.QuoteMeta(b.Exchange))
				}
			}
		}
		if r.counted && p.inventory.Server.Family() == cluster.Family43 {
			writable = append(writable, regexp.QuoteMeta(r.Queue))
			s.note("From RabbitMQ 4.3 on, counting the messages of a queue needs some permission on it. Setup gives write, with which nothing can be taken, purged or deleted there. Curfew does not use it.")
		}
	}
	permit := func(vhost, write, read string) {
		s.add("permissions", object{"user": s.user, "vhost": vhost, "configure": own, "write": write, "read": read})
	}
	if p.VHost == "/" {
		readable = append(readable, events)
	} else {
		permit("/", own, oneOf([]string{taps, events}))
		s.note("In virtual host / Curfew reads the events of RabbitMQ (rabbitmq_event_exchange). They are about the whole broker; without this permission Curfew polls.")
	}
	write := own
	if len(writable) > 1 {
		write = s.granted(writable)
	}
	permit(p.VHost, write, s.granted(readable))
}

// longestPattern is how many bytes a pattern may have: Erlang compiles about twice as much.
const longestPattern = 16 << 10

// oneOf returns a pattern that matches each of several.
func oneOf(patterns []string) string {
	slices.Sort(patterns)
	return "^(" + strings.Join(slices.Compact(patterns), "|") + ")$"
}

// granted is oneOf for a permission; anyName, with a note, if RabbitMQ would not take that.
func (s *Setup) granted(patterns []string) string {
	all := oneOf(patterns)
	if len(all) > longestPattern {
		s.note("RabbitMQ takes no pattern with as many names, so %s stands in place of one. Before you import this, write one that matches what Curfew needs, such as ^orders\\..*$", anyName)
		return anyName
	}
	return all
}

const anyName = ".*"

// gateway sets up that the messages of one queue wait in Curfew: see doc.go.
func (s *Setup) gateway(p *Plan, name, curfew string) error {
	q := p.inventory.Queue(name)
	switch {
	case q == nil:
		return errors.New("there is no such queue")
	case q.Unknown&(cluster.UnknownArguments|cluster.UnknownPolicy) != 0:
		return errors.New("it is unknown how it is declared: " + q.Unknown.String())
	case q.Type != cluster.Classic && q.Type != cluster.Quorum || q.Exclusive || q.AutoDelete || !q.Durable:
		return errors.New("only durable classic and quorum queues that are neither exclusive nor auto-delete can be federated")
	}
	in, waits := map[string]any{"x-queue-type": string(q.Type)}, map[string]any{"x-remaining-expiration": true}
	if ttl, ok := q.TTLMillis(); ok {
		in["x-message-ttl"], waits["x-message-ttl"] = int64(ttl), int64(ttl)
	}
	if err := s.deadLetters(q, in, waits, curfew); err != nil {
		return err
	}
	s.declareQueue(name+".in", in)
	s.declare(curfew, name+".in", name, waits)
	s.link("shovel", "curfew."+name+".in", object{"src-protocol": "amqp091", "src-uri": "amqp:///" + url.PathEscape(p.VHost), "src-queue": name + ".in",
		"dest-protocol": "amqp091", "dest-uri": curfew, "dest-exchange": name + ".in", // to a queue it would publish under the queue's name
		"src-prefetch-count": linkPrefetch})
	bound := false
	for _, b := range p.bindings {
		if b.Queue == name {
			s.bind(b.Exchange, name+".in", b.RoutingKey, b.Arguments)
			s.unbind, bound = append(s.unbind, b), true
		}
	}
	if !bound {
		s.note("Only the default exchange routes to %s: publishers have to publish to %s.in.", name, name)
	}
	s.setPolicy(q, "federation-upstream", upstreamName(p.VHost))
	if _, dead := q.DeadLetterExchange(); dead {
		if _, replaced := q.Text("dead-letter-routing-key"); !replaced {
			s.note("Messages that have moved to RabbitMQ have the routing key %s, also when they are dead-lettered there; the one they were published with is in the header x-original-routing-key.", name)
		}
	}
	s.note("Messages wait on Curfew's disk: give it a persistent volume.")
	return nil
}

// declareQueue declares a durable queue.
func (s *Setup) declareQueue(name string, arguments object) {
	s.add("queues", object{"name": name, "vhost": s.vhost, "durable": true, "auto_delete": false, "arguments": arguments})
}

func (s *Setup) bind(exchange, queue, key string, arguments object) {
	if arguments == nil {
		arguments = object{}
	}
	s.add("bindings", object{"source": exchange, "vhost": s.vhost, "destination": queue, "destination_type": "queue", "routing_key": key, "arguments": arguments})
}

// link adds an upstream or a shovel.
func (s *Setup) link(component, name string, value object) {
	value["ack-mode"], value["reconnect-delay"] = "on-confirm", 1
	s.add("parameters", object{"component": component, "vhost": s.vhost, "name": name, "value": value})
}

// policy adds one for queues or exchanges.
func (s *Setup) policy(name, pattern, applyTo string, definition object) {
	s.add("policies", object{"vhost": s.vhost, "name": name, "pattern": pattern, "apply-to": applyTo, "priority": ownPriority, "definition": definition})
}

// setPolicy adds a setting to what policies define for the queue.
func (s *Setup) setPolicy(q *cluster.Queue, key string, value any) {
	definition := maps.Clone(q.Policy)
	if definition == nil {
		definition = map[string]any{}
	}
	definition[key] = value
	if p := s.named("policies", s.vhost, "curfew."+q.Name); p != nil {
		p["definition"].(object)[key] = value
		return
	}
	s.policy("curfew."+q.Name, "^"+regexp.QuoteMeta(q.Name)+"$", "queues", definition)
	if len(q.Policy) > 0 {
		s.note("Only one policy applies to a queue: curfew.%s repeats what the present ones define for %s. From now on, change both.", q.Name, q.Name)
	}
}

// lostNode is how long a kept quorum queue of RabbitMQ 4.3 waits for the node of a consumer that was lost, in ms, where RabbitMQ waits a minute.
const lostNode = 1000

// keepSoon has the kept quorum queues give back soon what Curfew held when the node that it was connected to is lost.
func (s *Setup) keepSoon(p *Plan) {
	if p.inventory.Server.Family() != cluster.Family43 {
		return
	}
	for _, r := range p.Rows {
		q := p.inventory.Queue(r.Queue)
		if _, set := q.Policy[disconnectedTimeout]; !r.kept || set || q.Type != cluster.Quorum || q.Unknown&cluster.UnknownPolicy != 0 {
			continue
		}
		s.setPolicy(q, disconnectedTimeout, lostNode)
		s.note("RabbitMQ 4.3 waits a minute for a lost node before it gives back what a consumer there held. The policies of kept quorum queues make that a second.")
	}
}

const disconnectedTimeout = "consumer-disconnected-timeout"

// InCurfew begins a note with a command to run first.
const InCurfew = "First, where Curfew's command line is: "

// declare notes how to declare a fanout exchange in Curfew's broker, at its URL, with a queue.
func (s *Setup) declare(curfew, exchange, queue string, arguments map[string]any) {
	a, _ := cluster.ParseAddress(curfew) // Setup has checked it
	first := func(command string, names []string, flags ...string) {
		s.note("%s%s", InCurfew, deadline.Command(command, names, append(flags, "--vhost", a.VHost)...))
	}
	var with []string
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		with = append(with, "--arg", name+"="+inline(arguments[name]))
	}
	first("curfew declare queue", []string{queue}, with...)
	first("curfew declare exchange", []string{exchange}, "--type", "fanout")
	first("curfew bind", []string{exchange, queue})
}

// deadLetters sends messages that expire in Curfew where RabbitMQ's dead letters go.
func (s *Setup) deadLetters(q *cluster.Queue, in, waits map[string]any, curfew string) error {
	exchange, ok := q.DeadLetterExchange()
	if !ok {
		return nil
	}
	key, replaced := q.Text("dead-letter-routing-key")
	in["x-dead-letter-exchange"] = exchange
	out, dead := q.Name+".dlx", q.Name+".dead-letters"
	waits["x-dead-letter-exchange"] = out
	if replaced {
		in["x-dead-letter-routing-key"], waits["x-dead-letter-routing-key"] = key, key
	}
	shovel := object{"src-protocol": "amqp091", "src-uri": curfew, "src-queue": dead,
		"dest-protocol": "amqp091", "dest-uri": "amqp:///" + url.PathEscape(s.vhost), "src-prefetch-count": linkPrefetch}
	switch {
	case exchange != "":
		shovel["dest-exchange"] = exchange
	case replaced:
		shovel["dest-queue"] = key
	default:
		return errors.New("its dead letters go to the default exchange under their own routing keys, which a shovel cannot do: set a dead-letter-routing-key")
	}
	s.declare(curfew, out, dead, nil)
	s.link("shovel", "curfew."+q.Name+".dead-letters", shovel)
	return nil
}
