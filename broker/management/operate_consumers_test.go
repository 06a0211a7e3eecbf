package management_test

import (
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConsumersWithWhatTheyHold: what tools read under /api/curfew/consumers.
func TestConsumersWithWhatTheyHold(t *testing.T) {
	x := start(t)
	ch := x.dial()
	_, err := ch.QueueDeclare("held", false, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Qos(2, 0, false))
	got, err := ch.Consume("held", "slow", false, false, false, false, nil)
	require.NoError(t, err)
	before := time.Now().UnixMilli()
	for range 3 {
		require.NoError(t, ch.Publish("", "held", false, false, amqp091.Publishing{Expiration: "20"}))
	}
	<-got
	<-got
	var row map[string]any
	require.Eventually(t, func() bool {
		list := x.ask("GET", "/api/curfew/consumers/%2F/held", nil).is(200, "").list()
		row, _ = list[0].(map[string]any)
		return len(list) == 1 && row["messages_past_deadline"] == 2.0
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, []any{"consumer", "slow", 2.0, 2.0, true}, []any{row["kind"], row["consumer_tag"], row["messages_unacknowledged"], row["prefetch_count"], row["ack_required"]})
	assert.Equal(t, 1_800_000.0, row["consumer_timeout"], "the server's, as none is set")
	assert.GreaterOrEqual(t, row["oldest_unacknowledged_at"], float64(before))
	assert.GreaterOrEqual(t, row["earliest_deadline"], float64(before)+20)
	client, _ := row["client"].(map[string]any)
	assert.Equal(t, "AMQP 0.9.1 Client", client["product"])
	assert.Empty(t, x.ask("GET", "/api/curfew/consumers/%2F/none", nil).is(200, "").list())
	assert.Len(t, x.askAs("u-management", "p", "GET", "/api/curfew/consumers", nil).is(200, "").list(), 1, "who may look into the virtual host")
	x.user("outside", "management")
	assert.Empty(t, x.askAs("outside", "p", "GET", "/api/curfew/consumers", nil).is(200, "").list())
	x.askAs("outside", "p", "GET", "/api/curfew/consumers/%2F", nil).is(401, "")

	connections := x.ask("GET", "/api/connections?columns=consumers,messages_unacknowledged,state", nil).list()
	assert.Equal(t, []any{map[string]any{"consumers": 1.0, "messages_unacknowledged": 2.0, "state": "running"}}, connections)
}

// TestTimeoutInForce: of the consumer, else of its queue.
func TestTimeoutInForce(t *testing.T) {
	x := start(t)
	ch := x.dial()
	_, err := ch.QueueDeclare("brief", false, false, false, false, amqp091.Table{"x-consumer-timeout": 60_000})
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", "brief", false, false, amqp091.Publishing{}))
	_, _, err = ch.Get("brief", false)
	require.NoError(t, err)
	_, err = ch.Consume("brief", "patient", false, false, false, false, amqp091.Table{"x-consumer-timeout": 120_000})
	require.NoError(t, err)
	timeouts := map[any]any{}
	for _, one := range x.ask("GET", "/api/curfew/consumers/%2F/brief", nil).is(200, "").list() {
		row, _ := one.(map[string]any)
		timeouts[row["consumer_tag"]] = row["consumer_timeout"]
	}
	assert.Equal(t, map[any]any{"": 60_000.0, "patient": 120_000.0}, timeouts)
}
