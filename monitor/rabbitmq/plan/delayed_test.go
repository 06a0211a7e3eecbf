package plan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/cluster"
)

// TestDelayed: an exchange of the plugin becomes two and a queue; its bindings and arguments move along, and nothing else changes.
func TestDelayed(t *testing.T) {
	const old = `{"rabbitmq_version": "3.12.1", "users": [{"name": "app", "limits": {}}],
"exchanges": [
 {"name": "foo", "vhost": "/", "type": "x-delayed-message", "durable": true, "auto_delete": false, "internal": false, "arguments": {"x-delayed-type": "topic", "alternate-exchange": "lost"}},
 {"name": "foo", "vhost": "other", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}}],
"queues": [{"name": "q", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-max-priority": 9007199254740993}}],
"bindings": [
 {"source": "foo", "vhost": "/", "destination": "q", "destination_type": "queue", "routing_key": "a.*", "arguments": {}},
 {"source": "foo", "vhost": "other", "destination": "q", "destination_type": "queue", "routing_key": "a.*", "arguments": {}},
 {"source": "in", "vhost": "/", "destination": "foo", "destination_type": "exchange", "routing_key": "", "arguments": {}}],
"policies": [{"name": "all", "vhost": "/", "pattern": ".*", "apply-to": "all", "priority": 5, "definition": {"max-length": 10, "federation-upstream-set": "all"}}]}`
	run := func(in, version string, more ...DelayedExchange) (doc string, notes []string) {
		t.Helper()
		var out bytes.Buffer
		notes, err := Delayed(&out, strings.NewReader(in), more, cluster.Server{Product: "RabbitMQ", Version: version})
		require.NoError(t, err)
		return out.String(), notes
	}
	doc, notes := run(old, "4.3.6")
	require.JSONEq(t, `{"rabbitmq_version": "3.12.1", "users": [{"name": "app", "limits": {}}],
"exchanges": [
 {"name": "foo", "vhost": "/", "type": "headers", "durable": true, "auto_delete": false, "internal": false, "arguments": {}},
 {"name": "foo", "vhost": "other", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {}},
 {"name": "foo.now", "vhost": "/", "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": {"alternate-exchange": "lost"}}],
"queues": [{"name": "q", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-max-priority": 9007199254740993}},
 {"name": "foo.delay", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "quorum"}}],
"bindings": [
 {"source": "foo.now", "vhost": "/", "destination": "q", "destination_type": "queue", "routing_key": "a.*", "arguments": {}},
 {"source": "foo", "vhost": "other", "destination": "q", "destination_type": "queue", "routing_key": "a.*", "arguments": {}},
 {"source": "in", "vhost": "/", "destination": "foo", "destination_type": "exchange", "routing_key": "", "arguments": {}}],
"policies": [{"name": "all", "vhost": "/", "pattern": ".*", "apply-to": "all", "priority": 5, "definition": {"max-length": 10, "federation-upstream-set": "all"}},
 {"name": "curfew.foo", "vhost": "/", "pattern": "^foo$", "apply-to": "exchanges", "priority": 6, "definition": {"alternate-exchange": "foo.now", "federation-upstream-set": "all"}},
 {"name": "curfew.foo.delay", "vhost": "/", "pattern": "^foo\\.delay$", "apply-to": "queues", "priority": 6, "definition": {"dead-letter-exchange": "foo.now",
  "dead-letter-strategy": "at-least-once", "overflow": "reject-publish", "delivery-limit": -1, "consumer-disconnected-timeout": 1000}}]}`, doc)
	require.Equal(t, []string{"foo: publishers stay as they are, unless they declare it: it has the type headers now, and no arguments. Consumers bind to foo.now. " +
		"A queue that is bound to foo itself gets every message at once, so grant consumers read on foo.now only.",
		"The plugin's own messages are in no definitions: move publishers first, and stop the old node when its messages_delayed is 0."}, notes, "no policy has lost anything")
	require.Contains(t, doc, "9007199254740993", "numbers stay as they are")

	lost, _ := run(`{"exchanges": [{"name": "foo", "vhost": "/", "type": "x-delayed-message", "arguments": {"x-delayed-type": "direct"}}],
"policies": [{"name": "ae", "vhost": "/", "pattern": "^foo$", "apply-to": "exchanges", "priority": 1, "definition": {"alternate-exchange": "lost"}}]}`, "4.3.6")
	require.Contains(t, lost, `"name": "curfew.foo.now"`)
	require.Contains(t, lost, `"alternate-exchange": "lost"`)
	require.NotContains(t, lost, "undelivered", "what leads nowhere has somewhere to go")
	old3, _ := run(old, "3.10.8")
	require.NotContains(t, old3, "delivery-limit", "3.x would refuse the whole policy")
	mirrored := strings.Replace(old, `"policies": [`, `"policies": [{"name": "ha", "vhost": "/", "pattern": "^q", "apply-to": "queues", "definition": {"ha-mode": "all", "ha-sync-mode": "automatic"}},
 {"name": "both", "vhost": "/", "pattern": "^p", "apply-to": "queues", "definition": {"ha-mode": "all", "max-length": 7}}, `, 1)
	doc, notes = run(mirrored, "4.3.6")
	require.NotContains(t, doc, `"ha`)
	require.Contains(t, doc, `"max-length": 7`)
	require.Contains(t, strings.Join(notes, "\n"), "Policy ha mirrored classic queues")
	doc, _ = run(mirrored, "3.10.8")
	require.Contains(t, doc, `"ha-sync-mode"`)
	doc, notes = run(`{"exchanges": [{"name": "foo", "vhost": "/", "type": "x-delayed-message", "durable": true, "auto_delete": true, "arguments": {"x-delayed-type": "topic"}}],
"topic_permissions": [{"user": "app", "vhost": "/", "exchange": "foo", "write": "a", "read": "b"}, {"user": "app", "vhost": "/", "exchange": "x", "write": "a", "read": "b"}],
"policies": [{"name": "own", "vhost": "/", "pattern": "^foo", "apply-to": "exchanges", "definition": {"alternate-exchange": "lost", "of-a-plugin": 1}}]}`, "4.3.6")
	require.Contains(t, doc, `"exchange": "foo.now"`)
	require.Contains(t, doc, `"exchange": "x"`)
	for _, want := range []string{"Topic permissions on foo are on foo.now now", "Exchanges foo and foo.now are auto-delete", "Policy own no longer applies to foo, since curfew.foo does, which does not repeat of-a-plugin."} {
		require.Contains(t, strings.Join(notes, "\n"), want)
	}
	var only bytes.Buffer
	alone, err := Delayed(&only, nil, []DelayedExchange{{"/", "bar", "direct"}}, cluster.Server{Product: "RabbitMQ", Version: "4.3.6"})
	require.NoError(t, err)
	require.Len(t, alone, 1, "no plugin has any messages: %q", alone)
	fresh, _ := run(`{}`, "4.1.0", DelayedExchange{"/", "bar", "direct"})
	var all map[string][]map[string]any
	require.NoError(t, json.Unmarshal([]byte(fresh), &all))
	require.Len(t, all["exchanges"], 3)
	require.Equal(t, map[string]any{"alternate-exchange": "bar.undelivered"}, all["policies"][2]["definition"])
	require.Equal(t, map[string]any{"x-queue-type": "quorum", "x-max-length": 100000.0}, all["queues"][1]["arguments"])
	require.Equal(t, "bar.undelivered", all["bindings"][0]["source"])

	for in, want := range map[string]string{
		`[]`: "not a JSON object",
		`{}`: "no exchange of type x-delayed-message",
		`{"exchanges": [{"name": "foo", "type": "x-delayed-message", "arguments": {}}]}`:                                                                                 "no x-delayed-type",
		`{"exchanges": [{"name": "foo", "type": "x-delayed-message", "arguments": {"x-delayed-type": "topic"}}, {"name": "foo.now", "type": "topic", "arguments": {}}]}`: "already: rename it",
	} {
		_, err := Delayed(new(bytes.Buffer), strings.NewReader(in), nil, cluster.Server{Product: "RabbitMQ", Version: "4.3.0"})
		require.ErrorContains(t, err, want)
	}
}
