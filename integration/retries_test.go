package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// setPolicy sets a policy as the management API does.
func (c *curfew) setPolicy(name, pattern, to, definition string) {
	c.t.Helper()
	status, answer := c.request("guest", "guest", http.MethodPut, "/api/policies/%2F/"+name,
		fmt.Sprintf(`{"pattern":%q,"apply-to":%q,"definition":%s}`, pattern, to, definition))
	require.Equal(c.t, http.StatusCreated, status, answer)
}

// waitingRow is a message that waits for another try, as the API lists it.
type waitingRow struct {
	ID       string
	Until    int64
	Tries    int
	Deadline int64
}

func (c *curfew) waiting(queue string) (rows []waitingRow) {
	c.t.Helper()
	status, answer := c.request("guest", "guest", http.MethodGet, "/api/curfew/retries/%2F/"+queue, "")
	require.Equal(c.t, http.StatusOK, status, answer)
	check(c.t, json.Unmarshal([]byte(answer), &rows))
	return rows
}

// fails is a worker that fails on everything, in one of the ways there are.
type fails struct {
	name string
	fail func(t *testing.T, c *curfew, queue string)
}

var failures = []fails{
	{"nack", func(t *testing.T, c *curfew, queue string) { check(t, taken(t, c, queue).Nack(false, true)) }},
	{"reject", func(t *testing.T, c *curfew, queue string) { check(t, taken(t, c, queue).Reject(true)) }},
	{"a closed channel", func(t *testing.T, c *curfew, queue string) {
		ch := openChannel(t, dial(t, c.url))
		_, ok, err := ch.Get(queue, false)
		check(t, err)
		require.True(t, ok)
		check(t, ch.Close())
	}},
}

// taken is the message at the head of a queue, on a channel of its own.
func taken(t *testing.T, c *curfew, queue string) amqp091.Delivery {
	t.Helper()
	d, ok, err := openChannel(t, dial(t, c.url)).Get(queue, false)
	check(t, err)
	require.True(t, ok, "nothing is ready")
	return d
}

// TestRetriesOfAnHour: a worker fails on a job again and again. Each time the job waits exactly as long as the policy says, and after the last
// try it is parked. An hour of that takes a moment, with a clock that the test moves.
func TestRetriesOfAnHour(t *testing.T) {
	t.Parallel()
	c, clock := startManual(t)
	c.setPolicy("retry", "^jobs$", "queues", `{"retry-backoff":"1s,5s,30s,2m,57m24s","retry-park":"{queue}.failed"}`)
	ch := confirmingOn(t, c.url)
	ch.declare("jobs", nil)
	ch.declare("jobs.failed", nil)
	for _, worker := range failures {
		ch.publish("jobs", amqp091.Publishing{MessageId: worker.name, Body: []byte(worker.name)})
		for i, wait := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 57*time.Minute + 24*time.Second} {
			worker.fail(t, c, "jobs")
			eventually(t, answerLimit, "the job to wait", func() bool { return len(c.waiting("jobs")) == 1 })
			row := c.waiting("jobs")[0]
			assert.Equal(t, i+1, row.Tries)
			now := clock.advance(wait - time.Millisecond)
			assert.Equal(t, row.Until-1, now.Now, "%s, try %d", worker.name, i+1)
			require.Zero(t, readyCount(t, c.url, "jobs"), "%s: 1 ms early", worker.name)
			clock.advance(time.Millisecond)
			require.Equal(t, 1, readyCount(t, c.url, "jobs"), worker.name)
		}
		worker.fail(t, c, "jobs")
		eventually(t, answerLimit, "the job to be parked", func() bool { return readyCount(t, c.url, "jobs.failed") == 1 })
		d, _, err := ch.Get("jobs.failed", true)
		check(t, err)
		assert.Equal(t, worker.name, string(d.Body))
		assert.Equal(t, "delivery_limit", d.Headers["x-first-death-reason"])
	}
}

// TestRetriesAtDeadlines: while a job waits for another try its deadline comes: it is dead-lettered then, and not tried again.
func TestRetriesAtDeadlines(t *testing.T) {
	t.Parallel()
	c, clock := startManual(t)
	c.setPolicy("retry", "^jobs$", "queues", `{"retry-backoff":"10m"}`)
	ch := confirmingOn(t, c.url)
	ch.declare("late", nil)
	ch.declare("jobs", toQueue("late"))
	ch.publish("jobs", amqp091.Publishing{Body: []byte("useless in 4 minutes"), Expiration: "240000"})
	ch.publish("jobs", amqp091.Publishing{Body: []byte("useful")})
	check(t, taken(t, c, "jobs").Nack(false, true))
	check(t, taken(t, c, "jobs").Nack(false, true))
	eventually(t, answerLimit, "both to wait", func() bool { return len(c.waiting("jobs")) == 2 })
	clock.advance(4*time.Minute - time.Millisecond)
	assert.Empty(t, ch.all("late"))
	clock.advance(time.Millisecond)
	assert.Equal(t, []string{"useless in 4 minutes"}, ch.all("late"))
	clock.advance(6 * time.Minute)
	assert.Equal(t, []string{"useful"}, ch.all("jobs"))
	assert.Empty(t, ch.all("late"))
}

// TestRetriesByHand: what waits is counted, listed, returned now and cancelled.
func TestRetriesByHand(t *testing.T) {
	t.Parallel()
	c, _ := startManual(t)
	ch := confirmingOn(t, c.url)
	_, err := ch.QueueDeclare("jobs", true, false, false, false, amqp091.Table{"x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": 3_600_000})
	check(t, err)
	for _, body := range []string{"a", "b", "c"} {
		ch.publish("jobs", amqp091.Publishing{Body: []byte(body)})
		check(t, taken(t, c, "jobs").Nack(false, true))
	}
	eventually(t, answerLimit, "all to wait", func() bool { return len(c.waiting("jobs")) == 3 })
	status, answer := c.request("guest", "guest", http.MethodGet, "/api/queues/%2F/jobs", "")
	require.Equal(t, http.StatusOK, status)
	var queue map[string]any
	check(t, json.Unmarshal([]byte(answer), &queue))
	assert.Equal(t, []any{3.0, 3.0, 0.0}, []any{queue["messages_delayed"], queue["messages"], queue["messages_ready"]})
	for _, path := range []string{"/api/overview", "/api/vhosts/%2F"} {
		_, answer = c.request("guest", "guest", http.MethodGet, path, "")
		assert.Contains(t, answer, `"messages":3,`, path)
	}
	rows := c.waiting("jobs")
	at := "/api/curfew/retries/%2F/jobs/"
	status, _ = c.request("guest", "guest", http.MethodPost, at+rows[1].ID, "")
	assert.Equal(t, http.StatusNoContent, status)
	status, _ = c.request("guest", "guest", http.MethodDelete, at+rows[2].ID, "")
	assert.Equal(t, http.StatusNoContent, status)
	for _, gone := range rows[1:] {
		status, _ = c.request("guest", "guest", http.MethodDelete, at+gone.ID, "")
		assert.Equal(t, http.StatusNotFound, status)
	}
	assert.Equal(t, []string{"b"}, ch.all("jobs"))
	assert.Equal(t, rows[:1], c.waiting("jobs"))
}

// TestRetriesOutliveAKill: a job that waits when the process is killed comes back in the next run, when it was to come back, and not before.
func TestRetriesOutliveAKill(t *testing.T) {
	t.Parallel()
	data := "DATA_DIR=" + t.TempDir()
	first := startCurfew(t, data)
	first.setPolicy("retry", "^jobs$", "queues", `{"retry-backoff":"15s,1h"}`)
	ch := openChannel(t, dial(t, first.url))
	check(t, ch.Confirm(false))
	_, err := ch.QueueDeclare("jobs", true, false, false, false, nil)
	check(t, err)
	sent, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", "jobs", true, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, Body: []byte("job")})
	check(t, err)
	require.True(t, sent.Wait())
	check(t, taken(t, first, "jobs").Nack(false, true))
	eventually(t, answerLimit, "the job to wait", func() bool { return len(first.waiting("jobs")) == 1 })
	before := first.waiting("jobs")[0]
	sent, err = ch.PublishWithDeferredConfirmWithContext(t.Context(), "", "jobs", true, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, Body: []byte("other")})
	check(t, err)
	require.True(t, sent.Wait(), "what was handed in before is on the disk, too")
	first.kill()

	second := startCurfew(t, data)
	rows := second.waiting("jobs")
	require.Len(t, rows, 1, "the kill took longer than the wait")
	assert.Equal(t, before, rows[0])
	ch = openChannel(t, dial(t, second.url))
	deliveries, err := ch.Consume("jobs", "", true, false, false, false, nil)
	check(t, err)
	assert.Equal(t, "other", string(received(t, deliveries).Body))
	assert.Equal(t, "job", string(received(t, deliveries).Body))
	late := time.Since(time.UnixMilli(before.Until))
	assert.Greater(t, late, -time.Millisecond, "the API shows the next whole millisecond")
	assert.Less(t, late, answerLimit)
}
