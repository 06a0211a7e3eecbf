package management_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
)

// TestSamples: they begin with the first asking, the newest is of now, and those that
// nobody asks about are not kept.
func TestSamples(t *testing.T) {
	x := start(t)
	const path = "/api/queues/%2F/q?lengths_age=20&lengths_incr=5&msg_rates_age=20&msg_rates_incr=10"
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	first := x.now
	x.ask("GET", path+"&columns=messages_details", nil).is(200, `{"messages_details":{"rate":0,"avg":0,"avg_rate":0,"samples":[{"sample":0,"timestamp":1800000000000}]}}`)
	for range 2 {
		x.now = x.now.Add(5 * time.Second)
		x.ask("POST", "/api/exchanges/%2F/amq.default/publish", `{"routing_key":"q","payload":"","payload_encoding":"string","properties":{}}`).is(200, "")
		x.ask("GET", "/api/overview", nil).is(200, "")
	}
	x.now = x.now.Add(3 * time.Second)
	x.ask("GET", path+"&columns=messages_details.avg,messages_details.avg_rate,messages_details.samples", nil).is(200, `{"messages_details":{
		"avg":1,"avg_rate":0.2,"samples":[
		{"sample":2,"timestamp":1800000013000},{"sample":1,"timestamp":1800000008000},{"sample":0,"timestamp":1800000003000}]}}`)
	x.ask("GET", path+"&columns=message_stats.publish_details.samples", nil).is(200, `{"message_stats":{"publish_details":{"samples":[
		{"sample":2,"timestamp":1800000013000},{"sample":0,"timestamp":1800000003000}]}}}`)
	x.ask("GET", "/api/overview?lengths_age=20&lengths_incr=5&columns=queue_totals.messages_details.samples", nil).is(200, `{"queue_totals":{"messages_details":{"samples":[
		{"sample":2,"timestamp":1800000013000},{"sample":1,"timestamp":1800000008000}]}}}`)
	assert.NotContains(t, x.ask("GET", "/api/queues?lengths_age=20&lengths_incr=5", nil).body, "samples")

	for range 130 { // more than is kept
		x.now = x.now.Add(5 * time.Second)
		x.ask("GET", "/api/overview", nil).is(200, "")
	}
	whole := x.ask("GET", "/api/queues/%2F/q?lengths_age=1000&lengths_incr=5&columns=messages_details.samples", nil).object()
	assert.Len(t, whole["messages_details"].(map[string]any)["samples"], 120)

	x.ask("DELETE", "/api/queues/%2F/q", nil).is(204, "")
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	again := x.ask("GET", path+"&columns=messages_details.samples", nil).object()
	assert.Len(t, again["messages_details"].(map[string]any)["samples"], 1, "another queue of the name")
	assert.Equal(t, 5*time.Second*132+3*time.Second, x.now.Sub(first))
}

// TestNodesGoByTheNamesThatMonitoringMakesUp tries names of the instance, which is test
// here, and of the machine.
func TestNodesGoByTheNamesThatMonitoringMakesUp(t *testing.T) {
	x := start(t)
	machine, err := os.Hostname()
	require.NoError(t, err)
	short, _, _ := strings.Cut(machine, ".")
	for _, name := range []string{"curfew@test", "rabbit@test", "rabbit@" + machine, "rabbit@" + short} {
		for _, path := range []string{"nodes/" + name, "nodes/" + name + "/memory", "nodes/" + name + "/memory/relative", "healthchecks/node/" + name} {
			x.ask("GET", "/api/"+path, nil).is(200, "")
		}
	}
	for _, name := range []string{"rabbit@other", "rabbit@", "rabbit", "curfew@other"} {
		x.ask("GET", "/api/nodes/"+name, nil).is(404, "")
	}
}

// TestDefinitionsFromAPageAndToAFile: a form's file is imported and the page goes on where
// it wants; a download has the name that is asked for.
func TestDefinitionsFromAPageAndToAFile(t *testing.T) {
	x := start(t)
	form := func(fields ...string) reply {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for _, field := range fields {
			require.NoError(t, w.WriteField(field, "/#/import"))
		}
		h := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="d.json"`}}
		part, err := w.CreatePart(h)
		require.NoError(t, err)
		_, err = part.Write([]byte("\ufeff" + `{"vhosts":[{"name":"v"}]}`))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		req, err := http.NewRequest("POST", x.http.URL+"/api/definitions", &b)
		require.NoError(t, err)
		req.Header.Set("Content-Type", w.FormDataContentType())
		req.SetBasicAuth("guest", "guest")
		return x.do(req)
	}
	form().is(204, "")
	assert.Equal(t, "/#/import", form("redirect").is(303, "").header.Get("Location"))
	x.ask("PUT", "/api/queues/v/q", `{}`).is(201, "")

	assert.Equal(t, "attachment; filename=v.json", x.ask("GET", "/api/definitions/v?download=v.json", nil).is(200, "").header.Get("Content-Disposition"))
	for _, name := range []string{"a%20b", "a%3Bb", "a%22b"} {
		x.ask("GET", "/api/definitions?download="+name, nil).is(400, "")
	}
}

// TestProtectedVirtualHosts: they stay until the protection is lifted, and a document has it.
func TestProtectedVirtualHosts(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/vhosts/v", nil).is(201, "")
	x.ask("POST", "/api/vhosts/v/deletion/protection", nil).is(204, "")
	x.ask("GET", "/api/vhosts/v?columns=protected_from_deletion", nil).is(200, `{"protected_from_deletion":true}`)
	x.ask("PUT", "/api/vhosts/v", `{"description":"changed"}`).is(204, "")
	x.ask("POST", "/api/definitions", `{"vhosts":[{"name":"v"}]}`).is(204, "")
	x.ask("DELETE", "/api/vhosts/v", nil).is(412, "")
	definitions := x.ask("GET", "/api/definitions", nil).body
	assert.Contains(t, definitions, `"protected_from_deletion":true`)
	x.ask("DELETE", "/api/vhosts/v/deletion/protection", nil).is(204, "")
	x.ask("POST", "/api/definitions", definitions).is(204, "")
	x.ask("DELETE", "/api/vhosts/v", nil).is(412, "")
	x.ask("DELETE", "/api/vhosts/v/deletion/protection", nil).is(204, "")
	x.ask("DELETE", "/api/vhosts/v", nil).is(204, "")
	x.ask("POST", "/api/vhosts/v/deletion/protection", nil).is(404, "")
}

// TestTheClusterHasAnID that stays, is a global parameter, and is in no definitions.
func TestTheClusterHasAnID(t *testing.T) {
	x := start(t)
	id := x.ask("GET", "/api/global-parameters/internal_cluster_id", nil).is(200, "").object()["value"]
	assert.Regexp(t, "^rabbitmq-cluster-id-.{20,}$", id)
	assert.NotContains(t, x.ask("GET", "/api/definitions", nil).body, id)
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

// TestTheOldNodeCheckTellsOfAlarms with status 200; the one of today has 503.
func TestTheOldNodeCheckTellsOfAlarms(t *testing.T) {
	x := startWith(t, broker.Options{MemoryLimit: 1 << 30, MemoryInUse: func() int64 { return 2 << 30 }})
	require.Eventually(t, func() bool { memory, _ := x.b.Alarms(); return memory }, 10*time.Second, time.Millisecond)
	x.ask("GET", "/api/healthchecks/node", nil).is(200, `{"status":"failed","reason":"resource alarm(s) in effect:[memory]"}`)
	x.ask("GET", "/api/health/checks/alarms", nil).is(503, "")
}
