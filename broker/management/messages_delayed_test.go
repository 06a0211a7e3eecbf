package management_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
)

func TestDelayedOverHTTP(t *testing.T) {
	x := start(t)
	vh, _ := x.b.VHost("/")
	p := vh.NewPublisher("guest")
	properties := amqp.Properties{Headers: amqp.Table{"x-delay": int32(3_600_000)}}
	for range 2 {
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil), Body: []byte("body")})
		require.NoError(t, err)
	}
	p.Flush(nil)
	list, _ := vh.Delayed(0, 2)
	require.Len(t, list, 2)

	x.ask("GET", "/api/curfew/delayed/%2F?count=1", nil).is(200, "")
	body := x.ask("GET", "/api/curfew/delayed/%2F?count=1", nil).body
	assert.Contains(t, body, `"routing_key":"q"`)
	assert.Contains(t, body, `"payload_bytes":4`)
	assert.Contains(t, body, `"next":"2"`)
	id := body[strings.Index(body, `"id":"`)+6:]
	id = id[:strings.Index(id, `"`)]
	x.ask("DELETE", "/api/curfew/delayed/%2F/"+id, nil).is(204, "")
	x.ask("DELETE", "/api/curfew/delayed/%2F/"+id, nil).is(404, "")
	x.ask("DELETE", "/api/curfew/delayed/%2F/nonsense", nil).is(404, "")
	list, _ = vh.Delayed(0, 2)
	assert.Len(t, list, 1)
	assert.Contains(t, x.ask("GET", "/api/exchanges/%2F/amq.default", nil).body, `"messages_delayed":1`)
}

// TestScheduledOverHTTP: users see and change what they have published themselves, by its message-id.
func TestScheduledOverHTTP(t *testing.T) {
	x := start(t)
	vh, _ := x.b.VHost("/")
	for user, ids := range map[string][]string{"guest": {"mine-1", "mine-2", ""}, "other": {"mine-1", "theirs"}} {
		p := vh.NewPublisher(user)
		if user == "other" {
			require.NoError(t, x.b.Accounts.PutUser(access.User{Name: user}))
			require.NoError(t, x.b.Accounts.SetPermission(access.Permission{VHost: "/", User: user, Write: ".*"}))
		}
		for _, id := range ids {
			properties := amqp.Properties{MessageID: id, Headers: amqp.Table{"x-delay": int32(3_600_000)}}
			_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil), Body: []byte("body")})
			require.NoError(t, err)
		}
		p.Flush(nil)
	}
	const mine = "/api/curfew/scheduled/%2F/amq.default/mine-"
	list := func() []string {
		var rows []struct {
			ID  string `json:"message_id"`
			Due int64  `json:"due"`
		}
		require.NoError(t, json.Unmarshal([]byte(x.ask("GET", "/api/curfew/scheduled", nil).body), &rows))
		var all []string
		for _, r := range rows {
			all = append(all, fmt.Sprintf("%s in %v", r.ID, time.Until(time.UnixMilli(r.Due)).Round(time.Hour)))
		}
		return all
	}
	assert.Equal(t, []string{"mine-1 in 1h0m0s", "mine-2 in 1h0m0s"}, list())
	x.ask("PUT", mine+"2", map[string]any{"in": "3h"}).is(204, "")
	assert.Equal(t, []string{"mine-1 in 1h0m0s", "mine-2 in 3h0m0s"}, list())
	x.ask("PUT", mine+"2", map[string]any{"in": "soon"}).is(400, "")
	x.ask("DELETE", mine+"1", nil).is(204, "")
	x.ask("DELETE", mine+"1", nil).is(204, "")
	x.ask("DELETE", "/api/curfew/scheduled/%2F/amq.default/theirs", nil).is(404, "")
	x.ask("DELETE", "/api/curfew/scheduled/%2F/amq.topic/mine-2", nil).is(404, "")
	x.ask("POST", mine+"2/now", nil).is(204, "")
	require.Eventually(t, func() bool { return x.ask("POST", mine+"2/now", nil).status == 409 }, time.Minute, time.Millisecond)
	assert.Empty(t, list())
	left, _ := vh.Delayed(0, 10)
	assert.Len(t, left, 3, "the other's, and what has no message-id")
}

// TestScheduledOnATopicExchange: a topic permission is asked about the message's own routing key.
func TestScheduledOnATopicExchange(t *testing.T) {
	x := start(t)
	vh, _ := x.b.VHost("/")
	properties := amqp.Properties{MessageID: "m", Headers: amqp.Table{"x-delay": int32(3_600_000)}}
	p := vh.NewPublisher("guest")
	for _, key := range []string{"other.a", "mine.a"} {
		_, err := p.Add(&broker.Publication{Exchange: []byte("amq.topic"), RoutingKey: []byte(key), Properties: properties.Append(nil)})
		require.NoError(t, err)
		p.Flush(nil)
	}
	require.NoError(t, x.b.Accounts.SetTopicPermission(access.TopicPermission{User: "guest", VHost: "/", Exchange: "amq.topic", Write: "^mine\\.", Read: ".*"}))
	x.ask("DELETE", "/api/curfew/scheduled/%2F/amq.topic/m", nil).is(204, "")
	assert.Equal(t, 401, x.ask("DELETE", "/api/curfew/scheduled/%2F/amq.topic/m", nil).status, "the other has a key of its own")
	left, _ := vh.Delayed(0, 10)
	require.Len(t, left, 1)
	assert.Equal(t, "other.a", left[0].RoutingKey)
}

// TestScheduledAmongMany: a change finds its message by its name, and allocates no more beside 100,000 delayed messages.
func TestScheduledAmongMany(t *testing.T) {
	const others = 100_000
	x := start(t)
	vh, _ := x.b.VHost("/")
	p := vh.NewPublisher("guest")
	publish := func(id string) {
		properties := amqp.Properties{MessageID: id, Headers: amqp.Table{"x-delay": int32(3_600_000)}}
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
		require.NoError(t, err)
		p.Flush(nil)
	}
	cancel := func(id string) float64 {
		const runs = 10
		for range runs + 1 { // one to warm up
			publish(id)
		}
		return testing.AllocsPerRun(runs, func() { x.ask("DELETE", "/api/curfew/scheduled/%2F/amq.default/"+id, nil).is(204, "") })
	}
	alone := cancel("m")
	for i := range others {
		publish(fmt.Sprint("other-", i))
	}
	assert.Less(t, cancel("m"), alone+1000)
	left, _ := vh.Delayed(0, 2*others)
	require.Len(t, left, others)
	assert.Equal(t, "other-0", left[0].ID)
}
