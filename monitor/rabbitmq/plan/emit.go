package plan

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Formats are those that Emit knows.
var Formats = []string{"rabbitmqctl", "definitions", "kubernetes"}

// Emit writes the setup in one of Formats.
func (s *Setup) Emit(w io.Writer, format string) error {
	switch format {
	case "rabbitmqctl":
		return s.rabbitmqctl(w)
	case "definitions":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(s.definitions())
	case "kubernetes":
		return s.kubernetes(w)
	}
	return fmt.Errorf("unknown format %q: want one of %s", format, strings.Join(Formats, ", "))
}

func escapeVHost(vhost string) string { return url.PathEscape(vhost) }

// object is a JSON object.
type object = map[string]any

func (s *Setup) topology(vhost string) (exchanges, queues, bindings []object) {
	for _, x := range s.Exchanges {
		exchanges = append(exchanges, object{"name": x.Name, "vhost": vhost, "type": x.Type, "durable": true, "auto_delete": false, "internal": false, "arguments": object{}})
	}
	for _, q := range s.Queues {
		queues = append(queues, object{"name": q.Name, "vhost": vhost, "durable": true, "auto_delete": false, "arguments": q.Arguments})
	}
	for _, b := range s.Bindings {
		bindings = append(bindings, object{"source": b.Exchange, "vhost": vhost, "destination": b.Queue, "destination_type": "queue", "routing_key": b.RoutingKey, "arguments": emptied(b.Arguments)})
	}
	return exchanges, queues, bindings
}

// emptied returns m, or an empty object if m is nil.
func emptied(m map[string]any) map[string]any {
	if m == nil {
		return object{}
	}
	return m
}

func (s *Setup) definitions() object {
	exchanges, queues, bindings := s.topology(s.VHost)
	d := object{
		// Without a hash nobody can log in with a password: rabbitmqctl change_password sets one.
		"users": []object{{"name": s.User, "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": "monitoring"}},
	}
	var permissions, parameters, policies []object
	for _, p := range s.Permissions {
		permissions = append(permissions, object{"user": s.User, "vhost": p.VHost, "configure": p.Configure, "write": p.Write, "read": p.Read})
	}
	for _, p := range s.Upstreams {
		parameters = append(parameters, object{"component": "federation-upstream", "vhost": s.VHost, "name": p.Name, "value": p.Value})
	}
	for _, p := range s.Shovels {
		parameters = append(parameters, object{"component": "shovel", "vhost": s.VHost, "name": p.Name, "value": p.Value})
	}
	for _, p := range s.Policies {
		policies = append(policies, object{"vhost": s.VHost, "name": p.Name, "pattern": p.Pattern, "apply-to": "queues", "priority": p.Priority, "definition": p.Definition})
	}
	for key, list := range map[string][]object{"permissions": permissions, "parameters": parameters, "policies": policies, "exchanges": exchanges, "queues": queues, "bindings": bindings} {
		if list != nil {
			d[key] = list
		}
	}
	return d
}

// script writes shell commands.
type script struct {
	w   io.Writer
	err error
}

func (s *script) comment(text string) { s.line("# " + strings.ReplaceAll(text, "\n", "\n# ")) }

func (s *script) line(text string) {
	if s.err == nil {
		_, s.err = fmt.Fprintln(s.w, text)
	}
}

// run writes a command.
func (s *script) run(words ...string) { s.line(command(words...)) }

// command quotes words, except a variable that is in quotes already.
func command(words ...string) string {
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// password is the one word that the shell expands.
const password = `"$CURFEW_PASSWORD"`

func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=", r)
	}
	if word == password || word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func inline(v any) string {
	text, _ := json.Marshal(v) // maps of strings, numbers and booleans
	return string(text)
}

func (s *Setup) rabbitmqctl(w io.Writer) error {
	c := &script{w: w}
	c.line("#!/bin/sh")
	c.comment("For rabbitmqctl, in virtual host " + s.VHost + ". Set CURFEW_PASSWORD to the password that user " + s.User + " is to have.")
	for _, note := range s.Notes {
		c.comment(note)
	}
	c.line("set -eu")
	c.line(`: "${CURFEW_PASSWORD:?}"`)
	c.run("rabbitmqctl", "add_user", s.User, password)
	c.run("rabbitmqctl", "set_user_tags", s.User, "monitoring")
	for _, p := range s.Permissions {
		c.run("rabbitmqctl", "set_permissions", "-p", p.VHost, s.User, p.Configure, p.Write, p.Read)
	}
	if len(s.Queues) > 0 {
		// Not through its standard input: rabbitmqctl 4.0 on Erlang 27 hangs then. It may run as another user.
		c.comment("rabbitmqctl declares queues and bindings only through definitions.")
		exchanges, queues, bindings := s.topology(s.VHost)
		declared := object{"queues": queues, "bindings": bindings}
		if exchanges != nil {
			declared["exchanges"] = exchanges
		}
		c.line("definitions=$(mktemp)")
		c.line(`cat >"$definitions" <<'END_OF_DEFINITIONS'`)
		c.line(inline(declared))
		c.line("END_OF_DEFINITIONS")
		c.line(`chmod a+r "$definitions"`)
		c.line(`rabbitmqctl import_definitions "$definitions"`)
		c.line(`rm "$definitions"`)
	}
	for _, p := range s.Upstreams {
		c.run("rabbitmqctl", "set_parameter", "-p", s.VHost, "federation-upstream", p.Name, inline(p.Value))
	}
	for _, p := range s.Policies {
		c.run("rabbitmqctl", "set_policy", "-p", s.VHost, "--apply-to", "queues", "--priority", fmt.Sprint(p.Priority), p.Name, p.Pattern, inline(p.Definition))
	}
	for _, p := range s.Shovels {
		c.run("rabbitmqctl", "set_parameter", "-p", s.VHost, "shovel", p.Name, inline(p.Value))
	}
	if len(s.Unbind) > 0 {
		c.comment("Last of all, remove these bindings (management page, or rabbitmqadmin delete binding):")
		for _, b := range s.Unbind {
			c.comment("  exchange " + b.Exchange + ", queue " + b.Queue + ", routing key " + b.RoutingKey + ", arguments " + inline(emptied(b.Arguments)))
		}
	}
	return c.err
}

// kubernetes writes resources of RabbitMQ's Messaging Topology Operator.
func (s *Setup) kubernetes(w io.Writer) error {
	for _, note := range append([]string{"For RabbitMQ's Messaging Topology Operator. Replace the name rabbitmq with that of your RabbitmqCluster."}, s.Notes...) {
		if _, err := fmt.Fprintln(w, "# "+note); err != nil {
			return err
		}
	}
	for _, b := range s.Unbind {
		if _, err := fmt.Fprintf(w, "# Last of all, unbind queue %s from exchange %s (routing key %s).\n", b.Queue, b.Exchange, b.RoutingKey); err != nil {
			return err
		}
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	for _, one := range s.resources() {
		if err := encoder.Encode(one); err != nil {
			return err
		}
	}
	return encoder.Close()
}

// resources returns all resources: first those that the others need.
func (s *Setup) resources() (all []object) {
	all = append(all, resource("User", s.User, object{"tags": []string{"monitoring"}}))
	for i, p := range s.Permissions {
		all = append(all, resource("Permission", fmt.Sprintf("%s-%d", s.User, i+1), object{"user": s.User, "vhost": p.VHost,
			"permissions": object{"configure": p.Configure, "write": p.Write, "read": p.Read}}))
	}
	for _, x := range s.Exchanges {
		all = append(all, resource("Exchange", x.Name, object{"name": x.Name, "vhost": s.VHost, "type": x.Type, "durable": true, "autoDelete": false}))
	}
	for _, q := range s.Queues {
		arguments := object{}
		for key, value := range q.Arguments {
			if key != "x-queue-type" {
				arguments[key] = value
			}
		}
		all = append(all, resource("Queue", q.Name, object{"name": q.Name, "vhost": s.VHost, "type": q.Arguments["x-queue-type"], "durable": true,
			"autoDelete": false, "arguments": arguments}))
	}
	for i, b := range s.Bindings {
		all = append(all, resource("Binding", fmt.Sprintf("%s-%d", b.Queue, i+1), object{"source": b.Exchange, "destination": b.Queue, "destinationType": "queue",
			"routingKey": b.RoutingKey, "vhost": s.VHost, "arguments": emptied(b.Arguments)}))
	}
	for _, p := range s.Upstreams {
		name := p.Name + "-upstream"
		all = append(all, secret(name, object{"uri": p.Value["uri"]}),
			resource("Federation", p.Name, object{"name": p.Name, "vhost": s.VHost, "uriSecret": object{"name": resourceName(name)},
				"ackMode": p.Value["ack-mode"], "prefetchCount": p.Value["prefetch-count"], "reconnectDelay": p.Value["reconnect-delay"]}))
	}
	for _, p := range s.Policies {
		all = append(all, resource("Policy", p.Name, object{"name": p.Name, "vhost": s.VHost, "pattern": p.Pattern, "applyTo": "queues",
			"priority": p.Priority, "definition": p.Definition}))
	}
	for _, p := range s.Shovels {
		name := p.Name + "-uris"
		spec := object{"name": p.Name, "vhost": s.VHost, "uriSecret": object{"name": resourceName(name)}, "srcQueue": p.Value["src-queue"],
			"ackMode": p.Value["ack-mode"], "srcPrefetchCount": p.Value["src-prefetch-count"], "reconnectDelay": p.Value["reconnect-delay"]}
		for from, to := range map[string]string{"dest-queue": "destQueue", "dest-exchange": "destExchange"} {
			if v, ok := p.Value[from]; ok {
				spec[to] = v
			}
		}
		all = append(all, secret(name, object{"srcUri": p.Value["src-uri"], "destUri": p.Value["dest-uri"]}), resource("Shovel", p.Name, spec))
	}
	return all
}

func resource(kind, name string, spec object) object {
	spec["rabbitmqClusterReference"] = object{"name": "rabbitmq"}
	return object{"apiVersion": "rabbitmq.com/v1beta1", "kind": kind, "metadata": object{"name": resourceName(name)}, "spec": spec}
}

func secret(name string, data object) object {
	return object{"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": object{"name": resourceName(name), "labels": object{"rabbitmq.com/topology-operator": "true"}}, "stringData": data}
}

// resourceName turns a name into one that Kubernetes accepts. A checksum keeps names
// apart that differ only in characters that are not allowed.
func resourceName(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	fit := strings.Trim(b.String()[:min(b.Len(), 200)], "-")
	if fit == name {
		return name
	}
	return strings.TrimPrefix(fmt.Sprintf("%s-%08x", fit, crc32.ChecksumIEEE([]byte(name))), "-")
}
