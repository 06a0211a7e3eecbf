package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// clockOf is the manual clock of a Curfew, as its API has it.
type clockOf struct {
	t    testing.TB
	url  string
	user string // and password
}

type clockTime struct {
	Manual    bool
	Now, Next int64
}

func startManual(t testing.TB) (*curfew, clockOf) {
	t.Helper()
	c := startCurfew(t, "CLOCK=manual", "DATA_DIR=")
	return c, clockOf{t, c.http + "/api/curfew/clock", "guest"}
}

func (c clockOf) move(body string) (now clockTime) {
	c.t.Helper()
	status, answer := c.post(body)
	require.Equal(c.t, http.StatusOK, status, string(answer))
	check(c.t, json.Unmarshal(answer, &now))
	return now
}

func (c clockOf) post(body string) (status int, answer []byte) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	check(c.t, err)
	r.SetBasicAuth(c.user, c.user)
	a, err := http.DefaultClient.Do(r)
	check(c.t, err)
	defer a.Body.Close()
	answer, err = io.ReadAll(a.Body)
	check(c.t, err)
	return a.StatusCode, answer
}

func (c clockOf) advance(d time.Duration) clockTime {
	c.t.Helper()
	return c.move(fmt.Sprintf(`{"advance": %q}`, d))
}

// confirming is a channel in confirm mode: what publish has sent is in its queue.
type confirming struct {
	*amqp091.Channel
	t testing.TB
}

func confirmingOn(t testing.TB, url string) confirming {
	ch := openChannel(t, dial(t, url))
	check(t, ch.Confirm(false))
	return confirming{ch, t}
}

func (c confirming) publish(queue string, p amqp091.Publishing) {
	c.t.Helper()
	sent, err := c.PublishWithDeferredConfirmWithContext(c.t.Context(), "", queue, true, false, p)
	check(c.t, err)
	require.True(c.t, sent.Wait())
}

func (c confirming) declare(queue string, args amqp091.Table) {
	c.t.Helper()
	_, err := c.QueueDeclare(queue, false, false, false, false, args)
	check(c.t, err)
}

// all takes what is in a queue, as texts.
func (c confirming) all(queue string) (list []string) {
	c.t.Helper()
	for {
		d, ok, err := c.Get(queue, true)
		check(c.t, err)
		if !ok {
			return list
		}
		list = append(list, string(d.Body))
	}
}

func toQueue(name string) amqp091.Table {
	return amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}
}

// TestManualClockIsQuick: an hour with a thousand deadlines, each dead-lettered, takes less than 50 ms.
func TestManualClockIsQuick(t *testing.T) {
	c, clock := startManual(t)
	ch := confirmingOn(t, c.url)
	ch.declare("dead", nil)
	ch.declare("hour", toQueue("dead"))
	var want []string
	best := time.Hour
	for started := time.Now(); best >= 50*time.Millisecond && time.Since(started) < time.Minute; { // the machine may be busy: once is enough
		for i := range 1000 {
			ch.publish("hour", amqp091.Publishing{Body: fmt.Append(nil, i), Expiration: fmt.Sprint(3_600_000 - i*3600)})
		}
		began := time.Now()
		clock.advance(time.Hour)
		best = min(best, time.Since(began))
		want = want[:0]
		for i := range 1000 {
			want = append(want, fmt.Sprint(999-i))
		}
		require.Equal(t, want, ch.all("dead"), "the last published has the first deadline")
	}
	t.Logf("an hour with 1000 deadlines: %v", best)
	require.Less(t, best, 50*time.Millisecond)
}

// TestManualClockKeepsTheOrder: messages go through random chains of waiting queues, some of them delayed at first. They arrive at the end in the
// order that the times to live add up to, whether the clock goes there in one step or in many.
func TestManualClockKeepsTheOrder(t *testing.T) {
	c, clock := startManual(t)
	ch := confirmingOn(t, c.url)
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		end := fmt.Sprint("end", seed)
		ch.declare(end, nil)
		ttl, next := make([]int64, 8), make([]int, 8) // queue i dead-letters to queue next[i], or to the end
		name := func(i int) string { return fmt.Sprintf("wait%d.%d", seed, i) }
		for i := range ttl {
			ttl[i], next[i] = 1+rng.Int64N(20)*1000, i+1+rng.IntN(len(ttl)-i)
			args := toQueue(end)
			if next[i] < len(ttl) {
				args = toQueue(name(next[i]))
			}
			args["x-message-ttl"] = ttl[i]
			ch.declare(name(i), args)
		}
		arrives := map[string]int64{} // ms from now
		for m := range 200 {
			at, p, into := int64(0), amqp091.Publishing{Body: fmt.Append(nil, m)}, rng.IntN(len(ttl))
			if rng.IntN(3) == 0 {
				at = rng.Int64N(30_000)
				p.Headers = amqp091.Table{"x-delay": at}
			}
			first := ttl[into]
			if rng.IntN(3) == 0 {
				own := rng.Int64N(25_000)
				p.Expiration, first = fmt.Sprint(own), min(first, own)
			}
			at += first
			for q := next[into]; q < len(ttl); q = next[q] {
				at += ttl[q]
			}
			ch.publish(name(into), p)
			arrives[string(p.Body)] = at
		}
		for left := 200 * time.Second; left > 0; {
			step := left
			if seed%2 == 1 {
				step = min(left, time.Duration(rng.Int64N(5000))*time.Millisecond)
			}
			clock.advance(step)
			left -= step
		}
		arrived := ch.all(end)
		require.Len(t, arrived, len(arrives))
		require.True(t, slices.IsSortedFunc(arrived, func(a, b string) int { return int(arrives[a] - arrives[b]) }), "seed %d: %v", seed, arrived)
	}
}

// TestManualClockMovesEverything: locks, idle queues, delayed messages, retries of dead letters and the timeout of acknowledgements.
func TestManualClockMovesEverything(t *testing.T) {
	c, clock := startManual(t)
	ch := confirmingOn(t, c.url)
	began := clock.advance(0)
	require.True(t, began.Manual)
	require.Zero(t, began.Next)

	ch.declare("locked", amqp091.Table{"x-lock-duration": 30_000})
	ch.publish("locked", amqp091.Publishing{Body: []byte("m")})
	holder := openChannel(t, dial(t, c.url))
	_, ok, err := holder.Get("locked", false)
	check(t, err)
	require.True(t, ok)
	clock.advance(29_999 * time.Millisecond)
	require.Empty(t, ch.all("locked"))
	require.Equal(t, began.Now+30_000, clock.move(`{"next": true}`).Now)
	require.Equal(t, []string{"m"}, ch.all("locked"), "the lock has lapsed")

	ch.declare("idle", amqp091.Table{"x-expires": 60_000})
	ch.declare("work", nil)
	ch.publish("work", amqp091.Publishing{Body: []byte("later"), Headers: amqp091.Table{"x-delay": 7_200_000}})
	require.Equal(t, began.Now+90_000, clock.move(`{"next": true}`).Now)
	_, status := ask(t, c.http, "/api/queues/%2f/idle")
	require.Equal(t, http.StatusNotFound, status, "it was unused for its x-expires")
	clock.advance(2*time.Hour - time.Minute - time.Millisecond)
	require.Empty(t, ch.all("work"))
	last := clock.move(`{"next": true}`)
	require.Equal(t, began.Now+30_000+7_200_000, last.Now)
	require.Zero(t, last.Next)
	require.Equal(t, []string{"later"}, ch.all("work"))
	require.Equal(t, last, clock.move(`{"next": true}`), "nothing is due: it stays")

	// A full target refuses a dead letter, which is tried again until there is room.
	ch.declare("full", amqp091.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	ch.publish("full", amqp091.Publishing{Body: []byte("first")})
	source := toQueue("full")
	source["x-queue-type"], source["x-dead-letter-strategy"], source["x-overflow"] = "quorum", "at-least-once", "reject-publish"
	_, err = ch.QueueDeclare("source", true, false, false, false, source)
	check(t, err)
	ch.publish("source", amqp091.Publishing{Body: []byte("second"), Expiration: "1000"})
	clock.advance(time.Minute)
	require.Equal(t, []string{"first"}, ch.all("full"))
	clock.advance(4 * time.Second)
	require.Equal(t, []string{"second"}, ch.all("full"))

	// A delivery that nobody acknowledges ends its channel, as it would in half an hour.
	held := openChannel(t, dial(t, c.url))
	closed := held.NotifyClose(make(chan *amqp091.Error, 1))
	ch.publish("work", amqp091.Publishing{Body: []byte("held")})
	_, ok, err = held.Get("work", false)
	check(t, err)
	require.True(t, ok)
	clock.advance(time.Hour)
	select {
	case why := <-closed:
		require.Contains(t, why.Reason, "timed out")
	case <-time.After(answerLimit):
		t.Fatal("the channel is still open")
	}
	status5, _ := ask(t, c.http, "/api/curfew/status")
	require.NotEmpty(t, pick(status5, "clock"))
}

// TestManualClockReachesConsumers: a consumer gets what a moved clock has sent on, and its answer counts from the time that the clock shows then.
func TestManualClockReachesConsumers(t *testing.T) {
	c, clock := startManual(t)
	ch := confirmingOn(t, c.url)
	ch.declare("jobs", toQueue("jobs.retry"))
	retry := toQueue("jobs")
	retry["x-message-ttl"] = 30_000
	ch.declare("jobs.retry", retry)
	consumer := openChannel(t, dial(t, c.url))
	jobs, err := consumer.Consume("jobs", "", false, false, false, false, nil)
	check(t, err)
	ch.publish("jobs", amqp091.Publishing{Body: []byte("job")})
	for attempt := range 4 {
		d := received(t, jobs)
		require.Len(t, deathCounts(&d), min(attempt, 1)*2)
		check(t, d.Reject(false))
		eventually(t, answerLimit, "the job to wait", func() bool { return readyCount(t, c.url, "jobs.retry") == 1 })
		clock.advance(30 * time.Second)
	}
	d := received(t, jobs)
	require.Equal(t, []int64{4, 4}, deathCounts(&d))
	check(t, d.Ack(false))
}

func deathCounts(d *amqp091.Delivery) (counts []int64) {
	for _, death := range deaths(*d) {
		counts = append(counts, death["count"].(int64))
	}
	return counts
}

// TestManualClockIsGuarded: only administrators move it, and only where it is manual.
func TestManualClockIsGuarded(t *testing.T) {
	c, clock := startManual(t)
	for body, reason := range map[string]string{
		`{"advance": "-1h"}`: "want a duration", `{"advance": "soon"}`: "want a duration", `{}`: "want {", `{"advance": "1h", "next": true}`: "want {",
		`{"advance": "2000000h"}`: "year 2200",
	} {
		status, answer := clock.post(body)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, string(bytes.ReplaceAll(answer, []byte(`\"`), []byte(`"`))), reason)
	}
	for _, user := range []struct {
		path, body string
	}{{"users/tester", `{"password": "tester", "tags": "monitoring"}`}, {"permissions/%2f/tester", `{"configure": ".*", "write": ".*", "read": ".*"}`}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.http+"/api/"+user.path, strings.NewReader(user.body))
		check(t, err)
		r.SetBasicAuth("guest", "guest")
		a, err := http.DefaultClient.Do(r)
		check(t, err)
		a.Body.Close()
		require.Less(t, a.StatusCode, 300)
	}
	tester := clock
	tester.user = "tester"
	status, _ := tester.post(`{"advance": "1s"}`)
	require.Equal(t, http.StatusUnauthorized, status)

	machine := startCurfew(t)
	status, answer := clockOf{t, machine.http + "/api/curfew/clock", "guest"}.post(`{"advance": "1s"}`)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, string(answer), "--clock manual")
}
