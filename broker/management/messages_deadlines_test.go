package management_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
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
	require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "u-management", VHost: "/", Read: "^r$"}))
	x.askAs("u-management", "p", "POST", "/api/curfew/locks/%2F/q/"+token, nil).is(401, "")
	require.NoError(t, got.Ack(false))
	require.Eventually(t, func() bool {
		return x.ask("POST", "/api/curfew/locks/%2F/q/"+token, nil).status == 404
	}, time.Minute, time.Millisecond)
}

func TestDeadlinesOverHTTP(t *testing.T) {
	x := start(t)
	dead := x.deadLetters(0)
	vh, _ := x.b.VHost("/")
	p := vh.OwnPublisher()
	for i := range 3 {
		properties := amqp.Properties{Expiration: fmt.Sprint(60_000 * (3 - i)), MessageID: fmt.Sprint("id", i)}
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
		require.NoError(t, err)
	}
	p.Flush(nil)
	type listed struct {
		Total int
		Items []struct {
			Seq, Deadline int64
			MessageID     string `json:"message_id"`
			Overdue       bool
		}
	}
	list := func(query string) (l listed) {
		require.NoError(t, json.Unmarshal([]byte(x.ask("GET", "/api/curfew/deadlines"+query, nil).body), &l))
		return l
	}
	next := list("?count=2")
	assert.Equal(t, 3, next.Total)
	require.Len(t, next.Items, 2)
	assert.Equal(t, "id2 id1", next.Items[0].MessageID+" "+next.Items[1].MessageID)
	assert.Empty(t, list("/%2F/q?overdue=true").Items)

	one := fmt.Sprint("/api/curfew/deadlines/%2F/q/", next.Items[0].Seq)
	was := next.Items[0].Deadline
	assert.JSONEq(t, fmt.Sprintf(`{"outcome":"rescheduled","deadline":%d}`, was+300_000), x.ask("POST", one, map[string]any{"by_millis": 300_000}).body)
	assert.JSONEq(t, fmt.Sprintf(`{"outcome":"rescheduled","deadline":%d}`, was-1000), x.ask("POST", one, map[string]any{"by_millis": -301_000}).body)
	assert.JSONEq(t, `{"outcome":"rescheduled","deadline":0}`, x.ask("POST", one, map[string]any{"cancel": true}).body)
	assert.Equal(t, 2, list("").Total)
	x.ask("POST", one, map[string]any{"by_millis": 1}).is(400, "")
	x.ask("POST", one, map[string]any{}).is(400, "")
	assert.JSONEq(t, `{"outcome":"expired","deadline":0}`, x.ask("POST", one, map[string]any{"fire": true}).body)
	x.ask("POST", one, map[string]any{"fire": true}).is(404, "")
	ready, _, _ := dead.Messages.Counts()
	assert.Equal(t, 1, ready, "it is dead-lettered")
	require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "u-management", VHost: "/", Read: ".*"}))
	assert.Equal(t, 401, x.askAs("u-management", "p", "POST", fmt.Sprint("/api/curfew/deadlines/%2F/q/", next.Items[1].Seq), map[string]any{"cancel": true}).status)
}

// TestInstantsOverHTTPAreTheWallClocks, though Curfew's own clock is a day ahead.
// TestTheEarliestOfManyDeadlines: of thousands, the later ones published first.
func TestTheEarliestOfManyDeadlines(t *testing.T) {
	const many = 5000
	x := start(t)
	vh, _ := x.b.VHost("/")
	_, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	p := vh.OwnPublisher()
	for i := range many {
		properties := amqp.Properties{Expiration: fmt.Sprint(1000 * (2*many - i)), MessageID: fmt.Sprint(many - i)}
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
		require.NoError(t, err)
	}
	p.Flush(nil)
	for _, count := range []int{1, 100} {
		var page struct {
			Total int
			Items []struct {
				MessageID string `json:"message_id"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(x.ask("GET", fmt.Sprintf("/api/curfew/deadlines?count=%d", count), nil).body), &page))
		assert.Equal(t, many, page.Total)
		require.Len(t, page.Items, count)
		for i, one := range page.Items {
			assert.Equal(t, fmt.Sprint(i+1), one.MessageID)
		}
	}
}

func TestInstantsOverHTTPAreTheWallClocks(t *testing.T) {
	wall := func() int64 { return time.Now().UnixNano() }
	x := startWith(t, broker.Options{Clock: func() int64 { return wall() + int64(24*time.Hour) }, Wall: wall})
	x.deadLetters(0)
	vh, _ := x.b.VHost("/")
	p, hour := vh.OwnPublisher(), time.Now().Add(time.Hour).UnixMilli()
	for _, header := range []string{"x-expires-at", "x-scheduled-enqueue-time"} {
		properties := amqp.Properties{Headers: amqp.Table{header: hour}}
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
		require.NoError(t, err)
	}
	p.Flush(nil)
	list := func(query string) string { return x.ask("GET", "/api/curfew/deadlines"+query, nil).body }
	assert.Contains(t, list(""), fmt.Sprintf(`"deadline":%d,`, hour))
	assert.Contains(t, list(fmt.Sprint("?before=", hour)), `"total":1`)
	assert.Contains(t, list(fmt.Sprint("?before=", hour-1)), `"total":0`)
	assert.Contains(t, list("?overdue=true"), `"total":0`)
	assert.Contains(t, x.ask("GET", "/api/curfew/delayed/%2F", nil).body, fmt.Sprintf(`"due":%d,`, hour))
	assert.Contains(t, x.ask("POST", "/api/queues/%2F/q/peek", `{}`).body, fmt.Sprintf(`"deadline":%d,`, hour))
	assert.Contains(t, x.ask("POST", "/api/curfew/deadletters/%2F/q/search", nil).body, fmt.Sprintf(`"deadline":%d,`, hour))
	assert.Contains(t, x.ask("GET", "/api/queues/%2F/q", nil).body, `"idle_since":"`+time.Now().UTC().Format("2006-01-02T"))

	const one = "/api/curfew/deadlines/%2F/q/1"
	assert.JSONEq(t, fmt.Sprintf(`{"outcome":"rescheduled","deadline":%d}`, hour+1), x.ask("POST", one, map[string]any{"at": hour + 1}).body)
	assert.JSONEq(t, fmt.Sprintf(`{"outcome":"rescheduled","deadline":%d}`, hour+60_001), x.ask("POST", one, map[string]any{"by_millis": 60_000}).body)
	for _, at := range []int64{-1, hour + policy.MaxTTLMillis, math.MaxInt64} {
		x.ask("POST", one, map[string]any{"at": at}).is(400, "")
	}
	for _, by := range []int64{-2 * hour, policy.MaxTTLMillis, math.MaxInt64, math.MinInt64} {
		x.ask("POST", one, map[string]any{"by_millis": by}).is(400, "")
	}
	assert.Contains(t, x.ask("POST", one, map[string]any{"at": time.Now().UnixMilli()}).body, `"outcome":"expired"`)
}
