package management_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kindOf is the JSON type of a value: "str", "int", "float", "bool", "obj", "list" or "null".
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "str"
	case bool:
		return "bool"
	case float64:
		if v == math.Trunc(v) {
			return "int"
		}
		return "float"
	case []any:
		return "list"
	}
	return "obj"
}

// has holds an object to its fields, written "name:type name:type|null"; "a.b" is b in a.
func has(t *testing.T, what string, v any, fields string) {
	t.Helper()
	for field := range strings.FieldsSeq(fields) {
		name, kinds, _ := strings.Cut(field, ":")
		at := v
		for part := range strings.SplitSeq(name, ".") {
			o, ok := at.(map[string]any)
			require.True(t, ok, "%s: %s: not an object around it", what, name)
			at, ok = o[part]
			require.True(t, ok, "%s lacks %s", what, name)
		}
		assert.Contains(t, strings.Split(kinds, "|"), kindOf(at), "%s: %s is %v", what, name, at)
	}
}

// world is a site where something of everything is.
func world(t *testing.T) *site {
	x := start(t)
	ch := x.dial()
	require.NoError(t, ch.Confirm(false))
	require.NoError(t, ch.ExchangeDeclare("x", "topic", true, false, false, false, nil))
	_, err := ch.QueueDeclare("q", true, false, false, false, amqp091.Table{"x-message-ttl": 600000})
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("q", "a.*", "x", false, nil))
	require.NoError(t, ch.Publish("x", "a.b", false, false, amqp091.Publishing{Body: []byte("m"), ContentType: "text/plain"}))
	require.NoError(t, ch.Publish("x", "a.c", false, false, amqp091.Publishing{Body: []byte("m2")}))
	require.NoError(t, ch.Qos(1, 0, false))
	_, err = ch.Consume("q", "tag", false, false, false, false, amqp091.Table{"x-priority": 1})
	require.NoError(t, err)
	_, err = ch.QueueDeclarePassive("q", true, false, false, false, nil) // all before it has happened
	require.NoError(t, err)
	x.ask("PUT", "/api/policies/%2F/p", `{"pattern":"^q$","definition":{"max-length":100},"apply-to":"queues"}`).is(201, "")
	return x
}

// TestRabbitmqadmin2 holds every object to the fields that rabbitmqadmin 2 cannot do without (its
// serde types), and the common ones that other strict clients decode.
func TestRabbitmqadmin2(t *testing.T) {
	x := world(t)
	first := func(path string) any {
		t.Helper()
		l := x.ask("GET", path, nil).is(200, "").list()
		require.NotEmpty(t, l, path)
		return l[0]
	}
	overview := x.ask("GET", "/api/overview", nil).object()
	has(t, "overview", overview, `cluster_name:str node:str erlang_full_version:str erlang_version:str rabbitmq_version:str product_name:str
		product_version:str management_version:str statistics_db_event_queue:int rates_mode:str exchange_types:list disable_stats:bool
		default_queue_type:str sample_retention_policies:obj enable_queue_totals:bool
		churn_rates.connection_created:int churn_rates.connection_closed:int churn_rates.queue_declared:int churn_rates.queue_created:int
		churn_rates.queue_deleted:int churn_rates.channel_created:int churn_rates.channel_closed:int churn_rates.channel_closed_details.rate:int
		queue_totals.messages:int queue_totals.messages_details.rate:int|float queue_totals.messages_ready:int queue_totals.messages_unacknowledged:int
		object_totals.connections:int object_totals.channels:int object_totals.queues:int object_totals.exchanges:int object_totals.consumers:int
		message_stats.publish:int message_stats.publish_details.rate:int|float message_stats.deliver_get:int message_stats.ack:int message_stats.confirm:int
		message_stats.return_unroutable:int message_stats.drop_unroutable:int message_stats.redeliver:int message_stats.disk_writes:int`)
	has(t, "listener", overview["listeners"].([]any)[0], "node:str protocol:str ip_address:str port:int")
	has(t, "context", overview["contexts"].([]any)[0], "description:str node:str path:str port:str")
	has(t, "exchange type", overview["exchange_types"].([]any)[0], "name:str description:str enabled:bool")
	has(t, "node", first("/api/nodes"), `name:str type:str running:bool uptime:int run_queue:int processors:int os_pid:str fd_total:int fd_used:int proc_total:int
		proc_used:int mem_limit:int mem_used:int mem_alarm:bool disk_free:int disk_free_limit:int disk_free_alarm:bool rates_mode:str enabled_plugins:list
		being_drained:bool sockets_used:int sockets_total:int partitions:list applications:list exchange_types:list auth_mechanisms:list`)
	has(t, "memory", x.ask("GET", "/api/nodes/curfew@test/memory", nil).object(), "memory.total.rss:int memory.total.allocated:int memory.strategy:str memory.code:int")
	const queue = `name:str vhost:str type:str durable:bool auto_delete:bool exclusive:bool arguments:obj node:str state:str memory:int consumers:int
		consumer_utilisation:int|float policy:str|null operator_policy:str|null effective_policy_definition:obj messages:int messages_ready:int
		messages_unacknowledged:int messages_persistent:int messages_ram:int message_bytes:int message_bytes_ready:int message_bytes_unacknowledged:int
		message_bytes_persistent:int message_bytes_ram:int messages_details.rate:int|float messages_ready_details.rate:int|float
		message_stats.publish:int message_stats.publish_details.rate:int|float message_stats.deliver_get_details.rate:int|float message_stats.ack:int
		head_message_timestamp:int|null idle_since:str|null garbage_collection:obj delivery_limit:int|str internal:bool`
	has(t, "queue", first("/api/queues"), queue)
	has(t, "queue", x.ask("GET", "/api/queues/%2F/q", nil).object(), queue+" consumer_details:list")
	has(t, "exchange", first("/api/exchanges"), "name:str vhost:str type:str durable:bool auto_delete:bool internal:bool arguments:obj message_stats.publish_in:int")
	has(t, "binding", first("/api/bindings"), "source:str vhost:str destination:str destination_type:str routing_key:str arguments:obj properties_key:str")
	has(t, "connection", first("/api/connections"), `name:str node:str protocol:str user:str connected_at:int client_properties:obj state:str host:str port:int
		peer_host:str peer_port:int channel_max:int frame_max:int timeout:int channels:int vhost:str type:str ssl:bool auth_mechanism:str recv_oct:int send_oct:int
		recv_oct_details.rate:int|float send_oct_details.rate:int|float user_provided_name:str`)
	has(t, "channel", first("/api/channels"), `number:int name:str connection_details.name:str connection_details.peer_host:str connection_details.peer_port:int
		vhost:str state:str consumer_count:int confirm:bool prefetch_count:int messages_unacknowledged:int messages_unconfirmed:int message_stats.publish:int`)
	consumer := `consumer_tag:str active:bool ack_required:bool prefetch_count:int exclusive:bool arguments:obj consumer_timeout:int queue.name:str queue.vhost:str
		channel_details.number:int channel_details.name:str channel_details.connection_name:str channel_details.node:str channel_details.peer_host:str
		channel_details.peer_port:int channel_details.user:str`
	has(t, "consumer", first("/api/consumers"), consumer)
	has(t, "consumer", x.ask("GET", "/api/queues/%2F/q", nil).object()["consumer_details"].([]any)[0], consumer)
	has(t, "message", x.ask("POST", "/api/queues/%2F/q/get", `{"ackmode":"ack_requeue_true","count":"1","encoding":"auto"}`).list()[0],
		"payload_bytes:int redelivered:bool exchange:str routing_key:str message_count:int properties:obj payload:str payload_encoding:str")
	has(t, "policy", first("/api/policies"), "name:str vhost:str pattern:str apply-to:str priority:int definition:obj")
	has(t, "user", first("/api/users"), "name:str tags:list password_hash:str hashing_algorithm:str")
	has(t, "permissions", first("/api/permissions"), "user:str vhost:str configure:str write:str read:str")
	has(t, "feature flag", first("/api/feature-flags"), "name:str state:str desc:str doc_url:str stability:str provided_by:str")
	has(t, "vhost", first("/api/vhosts"), "name:str tags:list description:str default_queue_type:str metadata:obj tracing:bool cluster_state:obj")
}

// TestIdleThingsHaveAllNumbers: a broker on which nothing has happened shows objects and zeros, not
// nothing; rates are written as floats.
func TestIdleThingsHaveAllNumbers(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	for _, path := range []string{"/api/overview", "/api/queues/%2F/q", "/api/exchanges/%2F/amq.direct", "/api/vhosts/%2F"} {
		r := x.ask("GET", path, nil)
		assert.Contains(t, r.body, `_details":{"rate":0.0}`, path)
		has(t, path, r.object(), "message_stats:obj")
	}
	x.ask("GET", "/api/queues/%2F/q?columns=effective_policy_definition,policy", nil).is(200, `{"effective_policy_definition":{},"policy":null}`)
}

// TestNServiceBus: what the transport asks at its start (ManagementApi, BrokerVerifier,
// DeliveryLimit) and ServiceControl afterwards, and how it reads the answers.
func TestNServiceBus(t *testing.T) {
	x := world(t)
	x.askAs("", "", "GET", "/api/overview", nil).is(401, "") // HttpClient asks without credentials first
	overview := x.ask("GET", "/api/overview", nil).object()
	assert.Regexp(t, `^[0-9]+\.[0-9]+\.[0-9]+$`, overview["rabbitmq_version"], "it must parse as System.Version")
	assert.Equal(t, false, overview["disable_stats"])
	enabled := map[any]any{}
	for _, f := range x.ask("GET", "/api/feature-flags", nil).list() {
		enabled[f.(map[string]any)["name"]] = f.(map[string]any)["state"]
	}
	assert.Equal(t, "enabled", enabled["stream_queue"])

	x.ask("PUT", "/api/queues/%2F/nsb", `{"durable":true,"arguments":{"x-queue-type":"quorum"}}`).is(201, "")
	queue := x.ask("GET", "/api/queues/%2F/nsb", nil).object()
	has(t, "queue", queue, "name:str type:str arguments:obj delivery_limit:int|str effective_policy_definition:obj messages:int message_stats.ack:int")
	assert.Equal(t, "quorum", queue["type"])
	has(t, "queue", queue, "leader:str members:list online:list")
	x.ask("GET", "/api/extensions", nil).is(200, "[]")
	x.ask("PUT", "/api/policies/%2F/nsb.nsb.delivery-limit", map[string]any{
		"name": "nsb.nsb.delivery-limit", "pattern": "nsb", "priority": 0, "apply-to": "quorum_queues", "definition": map[string]any{"delivery-limit": 100000},
	}).is(201, "")
	x.ask("GET", "/api/queues/%2F/nsb?columns=effective_policy_definition", nil).is(200, `{"effective_policy_definition":{"delivery-limit":100000}}`)
	assert.Len(t, x.ask("GET", "/api/queues/%2F/q/bindings/", nil).list(), 2)
	x.ask("GET", "/api/exchanges/%2F/x/bindings/destination", nil).is(200, "[]")
	has(t, "page", x.ask("GET", "/api/queues/%2F/?page=1&page_size=500", nil).object(), "items:list page:int page_count:int")
}

// TestKEDA: the scaler's two questions (pkg/scalers/rabbitmq_scaler.go).
func TestKEDA(t *testing.T) {
	x := world(t)
	has(t, "queue", x.ask("GET", "/api/queues/%2F/q", nil).is(200, "").object(),
		"name:str messages:int messages_ready:int messages_unacknowledged:int message_stats.publish_details.rate:int|float message_stats.deliver_get_details.rate:int|float")
	page := x.ask("GET", "/api/queues/%2F?page=1&use_regex=true&pagination=false&name=%5Eq&page_size=100", nil).is(200, "").object()
	assert.EqualValues(t, 1, page["page_count"])
	require.Len(t, page["items"], 1)
	has(t, "item", page["items"].([]any)[0], "name:str messages:int message_stats.publish_details.rate:int|float")
}

// TestSpring: the node of a queue (RestClientNodeLocator), the aliveness test (BrokerRunningSupport),
// and what its Hop client's tests ask.
func TestSpring(t *testing.T) {
	x := world(t)
	assert.Equal(t, "curfew@test", x.ask("GET", "/api/queues/%2F/q", nil).object()["node"])
	x.ask("GET", "/api/aliveness-test/%2F", nil).is(200, `{"status":"ok"}`)
}

// TestMassTransit asks nothing of the API at run time; its health checks do.
func TestMassTransit(t *testing.T) {
	x := world(t)
	x.ask("GET", "/api/health/checks/virtual-hosts", nil).is(200, `{"status":"ok"}`)
	x.ask("PUT", "/api/queues/%2F/bus", `{"durable":true,"auto_delete":false,"arguments":{"x-expires":60000,"x-queue-type":"quorum","x-single-active-consumer":true}}`).is(201, "")
	assert.Equal(t, true, x.ask("GET", "/api/queues/%2F/bus", nil).object()["arguments"].(map[string]any)["x-single-active-consumer"])
}

// TestFlowerAndTelegraf and rabbitmq_exporter read these.
func TestFlowerAndTelegraf(t *testing.T) {
	x := world(t)
	has(t, "flower", x.ask("GET", "/api/queues/%2F", nil).list()[0], "name:str messages:int")
	has(t, "telegraf node", x.ask("GET", "/api/nodes", nil).list()[0], "disk_free_details.rate:int|float mem_used_details.rate:int|float gc_num:int io_read_avg_time:int|float uptime:int")
	has(t, "telegraf queue", x.ask("GET", "/api/queues", nil).list()[0], "auto_delete:bool idle_since:str|null head_message_timestamp:int|null slave_nodes:list synchronised_slave_nodes:list")
	for _, path := range []string{"/api/federation-links", "/api/federation-links/state/down", "/api/shovels"} {
		x.ask("GET", path, nil).is(200, "[]")
	}
	for _, path := range []string{"/api/federation-links/", "/api/shovels/"} {
		x.ask("GET", path+"%2F", nil).is(200, "[]")
		assert.Equal(t, 404, x.ask("GET", path+"nowhere", nil).status)
	}
	x.ask("POST", "/api/rebalance/queues", nil).is(204, "")
	x.ask("POST", "/api/vhosts/%2F/start/curfew@test", nil).is(204, "")
}

// TestRabtap decodes with Go structs (pkg/rabbitmq_api_model.go).
func TestRabtap(t *testing.T) {
	x := world(t)
	has(t, "exchange", x.ask("GET", "/api/exchanges", nil).list()[0], "name:str vhost:str type:str durable:bool auto_delete:bool internal:bool arguments:obj message_stats.publish_in_details.rate:int|float")
	has(t, "vhost", x.ask("GET", "/api/vhosts", nil).list()[0], "name:str description:str tags:list tracing:bool")
	has(t, "user", x.ask("GET", "/api/users", nil).list()[0], "tags:list")
}

// TestTerraform: how cyrilgdn/rabbitmq finds the binding it made (rabbitmq/resource_binding.go).
func TestTerraform(t *testing.T) {
	x := world(t)
	made := x.ask("POST", "/api/bindings/%2F/e/x/q/q", `{"source":"x","vhost":"/","destination":"q","destination_type":"queue","routing_key":"#","arguments":{"k":"v"}}`).is(201, "")
	location := strings.Split(made.header.Get("Location"), "/")
	key := location[len(location)-1]
	found := false
	for _, b := range x.ask("GET", "/api/bindings/%2F/", nil).list() {
		o := b.(map[string]any)
		found = found || strings.ReplaceAll(strings.ReplaceAll(o["properties_key"].(string), "%", "%25"), "/", "%2F") == key
	}
	assert.True(t, found, key)
	x.ask("DELETE", "/api/bindings/%2F/e/x/q/q/"+key, nil).is(204, "")
	x.ask("DELETE", "/api/bindings/%2F/e/x/q/q/"+key, nil).is(404, "")
}

// TestRequestsOfTheNewRabbitmqadmin are those of rabbitmqadmin 2 (RabbitMQ's client in
// Rust), as it writes them, from a fresh virtual host to its end.
func TestRequestsOfTheNewRabbitmqadmin(t *testing.T) {
	x := start(t)
	for _, step := range []struct {
		method, path, body string
		status             int
	}{
		{"PUT", "vhosts/v", `{"name":"v","description":"d","tags":["a","b"],"default_queue_type":"quorum","tracing":false}`, 201},
		{"PUT", "queues/v/q", `{"name":"q","durable":true,"auto_delete":false,"exclusive":false,"arguments":{"x-queue-type":"quorum"}}`, 201},
		{"PUT", "exchanges/v/x", `{"name":"x","type":"fanout","durable":true,"auto_delete":false,"arguments":null}`, 201},
		{"POST", "bindings/v/e/x/q/q", `{"routing_key":"","arguments":null}`, 201},
		{"PUT", "users/w", `{"name":"w","password_hash":"a3VydEzp","tags":"management"}`, 201},
		{"PUT", "permissions/v/w", `{"user":"w","vhost":"v","configure":".*","read":".*","write":".*"}`, 201},
		{"PUT", "policies/v/p", `{"vhost":"v","name":"p","pattern":"^q","apply-to":"queues","priority":1,"definition":{"max-length":5}}`, 201},
		{"POST", "exchanges/v/x/publish", `{"properties":{},"routing_key":"","payload":"m","payload_encoding":"string"}`, 200},
		{"POST", "queues/v/q/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200},
		{"POST", "definitions/v", `{"queues":[{"name":"r","vhost":"v","durable":true,"auto_delete":false,"arguments":{}}]}`, 204},
		{"POST", "definitions", `{"vhosts":[{"name":"i"}],"queues":[{"name":"q","vhost":"i","durable":true,"auto_delete":false,"arguments":{}}]}`, 204},
		{"PUT", "queues/i/r", `{"name":"r","durable":true,"auto_delete":false,"exclusive":false,"arguments":{}}`, 201},
		{"PUT", "global-parameters/cluster_tags", `{"name":"cluster_tags","value":{"region":"eu"}}`, 201},
		{"PUT", "feature-flags/quorum_queue/enable", `{"name":"quorum_queue"}`, 204},
		{"POST", "users/bulk-delete", `{"users":["w","none"]}`, 204},
		{"POST", "vhosts/v/deletion/protection", "", 204},
		{"DELETE", "vhosts/v", "", 412},
		{"DELETE", "vhosts/v/deletion/protection", "", 204},
		{"DELETE", "vhosts/v", "", 204},
	} {
		x.ask(step.method, "/api/"+step.path, step.body).is(step.status, "")
	}
	x.ask("GET", "/api/overview?columns=cluster_tags", nil).is(200, `{"cluster_tags":{"region":"eu"}}`)
}
