package plan

import (
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubernetes writes the definitions as resources of RabbitMQ's Messaging Topology Operator.
func (s *Setup) kubernetes(w io.Writer) error {
	var b strings.Builder
	for _, note := range append([]string{"For RabbitMQ's Messaging Topology Operator. Replace the name rabbitmq with that of your RabbitmqCluster."}, s.Notes...) {
		b.WriteString("# " + note + "\n")
	}
	for _, one := range s.unbind {
		fmt.Fprintf(&b, "# Last of all, unbind queue %s from exchange %s (routing key %s).\n", one.Queue, one.Exchange, one.RoutingKey)
	}
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	for _, one := range s.resources() {
		if err := encoder.Encode(one); err != nil {
			return err
		}
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// resources returns all resources: first those that the others need.
func (s *Setup) resources() (all []object) {
	for _, u := range s.list("users") {
		all = append(all, resource("User", u["name"].(string), object{"tags": []string{u["tags"].(string)}}))
	}
	for i, p := range s.list("permissions") {
		all = append(all, resource("Permission", fmt.Sprintf("%s-%d", s.user, i+1), object{"user": p["user"], "vhost": p["vhost"],
			"permissions": object{"configure": p["configure"], "write": p["write"], "read": p["read"]}}))
	}
	for _, x := range s.list("exchanges") {
		all = append(all, resource("Exchange", x["name"].(string), picked(x, "name", "vhost", "type", "durable", "auto_delete autoDelete", "arguments")))
	}
	for _, q := range s.list("queues") {
		spec := picked(q, "name", "vhost", "durable", "auto_delete autoDelete")
		arguments := maps.Clone(q["arguments"].(object))
		spec["type"], spec["arguments"] = arguments["x-queue-type"], arguments
		delete(arguments, "x-queue-type")
		all = append(all, resource("Queue", q["name"].(string), spec))
	}
	for i, b := range s.list("bindings") {
		all = append(all, resource("Binding", fmt.Sprintf("%s-%d", b["destination"], i+1),
			picked(b, "source", "destination", "destination_type destinationType", "routing_key routingKey", "vhost", "arguments")))
	}
	var shovels []object // last: they use what the others make
	for _, p := range s.list("parameters") {
		name, value := p["name"].(string), p["value"].(object)
		spec := picked(value, "ack-mode ackMode", "prefetch-count prefetchCount", "reconnect-delay reconnectDelay",
			"src-queue srcQueue", "src-prefetch-count srcPrefetchCount", "dest-queue destQueue", "dest-exchange destExchange")
		spec["name"], spec["vhost"] = name, p["vhost"]
		if p["component"] == "shovel" {
			shovels = append(shovels, withSecret("Shovel", name, spec, name+"-uris", object{"srcUri": value["src-uri"], "destUri": value["dest-uri"]})...)
		} else {
			all = append(all, withSecret("Federation", name, spec, name+"-upstream", object{"uri": value["uri"]})...)
		}
	}
	for _, p := range s.list("policies") {
		all = append(all, resource("Policy", p["name"].(string), picked(p, "name", "vhost", "pattern", "apply-to applyTo", "priority", "definition")))
	}
	return append(all, shovels...)
}

// picked returns what from has under some keys; a second word renames.
func picked(from object, keys ...string) object {
	to := object{}
	for _, key := range keys {
		key, name, renamed := strings.Cut(key, " ")
		if !renamed {
			name = key
		}
		if v, ok := from[key]; ok {
			to[name] = v
		}
	}
	return to
}

func resource(kind, name string, spec object) object {
	spec["rabbitmqClusterReference"] = object{"name": "rabbitmq"}
	return object{"apiVersion": "rabbitmq.com/v1beta1", "kind": kind, "metadata": object{"name": resourceName(name)}, "spec": spec}
}

// withSecret returns a resource behind the secret that has its URLs.
func withSecret(kind, name string, spec object, secret string, data object) []object {
	spec["uriSecret"] = object{"name": resourceName(secret)}
	return []object{{"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": object{"name": resourceName(secret), "labels": object{"rabbitmq.com/topology-operator": "true"}}, "stringData": data}, resource(kind, name, spec)}
}

// resourceName turns a name into one that Kubernetes accepts. A checksum keeps names
// apart that differ only in characters that are not allowed.
func resourceName(name string) string {
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	fit = strings.Trim(fit[:min(len(fit), 200)], "-")
	if fit == name {
		return name
	}
	return strings.TrimPrefix(fmt.Sprintf("%s-%08x", fit, crc32.ChecksumIEEE([]byte(name))), "-")
}
