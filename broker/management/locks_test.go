package management_test

import (
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
)

func TestLockIsRenewed(t *testing.T) {
	x := start(t)
	ch := x.dial()
	_, err := ch.QueueDeclare("q", false, false, false, false, amqp091.Table{"x-lock-duration": int32(60_000), "x-delivery-deadline": true})
	require.NoError(t, err)
	_, err = ch.QueueDeclare("r", false, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{}))
	got, ok, err := ch.Get("q", false)
	require.NoError(t, err)
	require.True(t, ok)
	token := got.Headers["x-lock-token"].(string)
	answer := x.ask("POST", "/api/curfew/locks/%2F/q/"+token, nil).is(200, "").object()
	assert.Equal(t, "renewed", answer["outcome"])
	assert.GreaterOrEqual(t, answer["locked_until"].(float64), float64(got.Headers["x-locked-until"].(int64)))

	const lost = `{"error":"not_found","reason":"no lock of this queue has this token: it has lapsed, or its message was settled"}`
	x.ask("POST", "/api/curfew/locks/%2F/r/"+token, nil).is(404, lost)
	x.ask("POST", "/api/curfew/locks/%2F/q/"+token[:31]+"%20", nil).is(404, lost)
	x.ask("POST", "/api/curfew/locks/%2F/none/"+token, nil).is(404, "")
	require.NoError(t, x.b.SetPermission(access.Permission{User: "u-management", VHost: "/", Read: "^r$"}))
	x.askAs("u-management", "p", "POST", "/api/curfew/locks/%2F/q/"+token, nil).is(401, "")
	require.NoError(t, got.Ack(false))
	require.Eventually(t, func() bool {
		return x.ask("POST", "/api/curfew/locks/%2F/q/"+token, nil).status == 404
	}, 10*time.Second, time.Millisecond)
}

// TestSubqueueInAnyCase: the API understands it as AMQP does, and dead letters are imported into it.
func TestSubqueueInAnyCase(t *testing.T) {
	x := start(t)
	ch := x.dial()
	_, err := ch.QueueDeclare("q", false, false, false, false, amqp091.Table{"x-dead-letter-queue": true})
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Body: []byte("m")}))
	got, ok, err := ch.Get("q", false)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, got.Reject(false))
	const path = "/api/queues/%2F/q%2F$DeadLetterQueue"
	require.Eventually(t, func() bool {
		return x.ask("GET", path, nil).object()["messages"] == 1.0
	}, 10*time.Second, time.Millisecond)
	letters := "/api/curfew/deadletters/%2F/q%2F$DeadLetterQueue/"
	line := x.ask("POST", letters+"export", "{}").is(200, "").body
	x.ask("POST", letters+"import", line).is(200, `{"imported":1}`)
	list := x.ask("POST", path+"/get", map[string]any{"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}).is(200, "").list()
	assert.Len(t, list, 2)
	x.ask("DELETE", path+"/contents", nil).is(204, "")
	x.ask("POST", "/api/exchanges/%2F/amq.default/publish", map[string]any{
		"routing_key": "q/$deadletterqueue", "properties": map[string]any{}, "payload": "m", "payload_encoding": "string",
	}).is(400, errorOf("bad_request", "403 ACCESS_REFUSED - queue 'q/$deadletterqueue' in vhost '/' takes the dead letters of queue 'q' and nothing else"))
}
