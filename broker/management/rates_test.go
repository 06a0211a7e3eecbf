package management_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	for _, list := range []string{"/api/queues", "/api/queues/%2F"} {
		x.ask("GET", list+"?lengths_age=20&lengths_incr=5&columns=messages_details.samples", nil).is(200, `[{"messages_details":{"samples":[
			{"sample":2,"timestamp":1800000013000},{"sample":1,"timestamp":1800000008000},{"sample":0,"timestamp":1800000003000}]}}]`)
	}
	assert.Contains(t, x.ask("GET", "/api/exchanges?msg_rates_age=20&msg_rates_incr=10", nil).body, "samples")
	assert.Equal(t, 400, x.ask("GET", "/api/queues?lengths_age=20&lengths_incr=0", nil).status)

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
