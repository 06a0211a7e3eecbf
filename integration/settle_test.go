package integration

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	raceCount     = 30_000
	raceConsumers = 8
	racePrefetch  = 300
)

// TestSettledOnce: consumers ack and return 30,000 messages around the very instant they are due, so that acks, lazy expiry and
// eager fires meet on the same messages, in a binary built with the race detector. Each message ends exactly once: acked, or
// dead-lettered. A held message is its consumer's: its ack counts though the deadline has passed.
func TestSettledOnce(t *testing.T) {
	t.Parallel()
	c := startBinary(t, mustBinary(t, raced))
	q := topology{queue: "contested", dlx: "contested.dlx", dlq: "contested.dead"}
	goClient{}.declare(t, c.url, q)
	l := &endings{t: t, ends: make([]string, raceCount), settled: make(chan struct{})}

	dead, err := openChannel(t, dial(t, c.url)).Consume(q.dlq, "", true, false, false, false, nil)
	check(t, err)
	go func() {
		for d := range dead {
			l.end(string(d.Body), "dead-lettered")
		}
	}()
	for i := range raceConsumers {
		l.contend(c, q.queue, uint64(i))
	}
	l.publish(c, q.queue)

	select {
	case <-l.settled:
	case <-time.After(3 * time.Minute):
		t.Errorf("only %d of %d messages have ended", l.count(), raceCount)
	}
	eventually(t, answerLimit, "the monitor to have counted", func() bool {
		return int(c.metric("curfew_deadlines_fired_total")) >= l.tally()["dead-lettered"]
	})
	t.Logf("ends: %v; fired eagerly %.0f, lazily %.0f, on requeue %.0f", l.tally(), c.metric("curfew_deadlines_fired_total", `path="eager"`),
		c.metric("curfew_deadlines_fired_total", `path="lazy"`), c.metric("curfew_deadlines_fired_total", `path="requeue"`))
	if fired := int(c.metric("curfew_deadlines_fired_total")); fired != l.tally()["dead-lettered"] {
		t.Errorf("%d deadlines were counted as fired, %d messages dead-lettered", fired, l.tally()["dead-lettered"])
	}
	if left := readyCount(t, c.url, q.queue); left != 0 {
		t.Errorf("%d messages are left", left)
	}
}

// endings records how each message ended. A second end is an error.
type endings struct {
	t       *testing.T
	mu      sync.Mutex
	ends    []string
	ended   int
	settled chan struct{} // closed when all have
}

func (l *endings) end(id, how string) {
	number, err := strconv.Atoi(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || number >= len(l.ends) {
		l.t.Errorf("a message %q that was never published was %s", id, how)
		return
	}
	if l.ends[number] != "" {
		l.t.Errorf("message %d was %s and then %s", number, l.ends[number], how)
		return
	}
	l.ends[number] = how
	if l.ended++; l.ended == len(l.ends) {
		close(l.settled)
	}
}

func (l *endings) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

func (l *endings) tally() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	tally := map[string]int{}
	for _, how := range l.ends {
		tally[how]++
	}
	return tally
}

// publish sends the messages with times to live of 100-600 ms, each with its deadline in a header for the consumers to aim at.
func (l *endings) publish(c *curfew, queue string) {
	ch := openChannel(l.t, dial(l.t, c.url))
	check(l.t, ch.Confirm(false))
	random := rand.New(rand.NewPCG(3, 4))
	var last *amqp091.DeferredConfirmation
	for i := range raceCount {
		ttl := 100 + random.Int64N(501)
		var err error
		last, err = ch.PublishWithDeferredConfirm("", queue, true, false, amqp091.Publishing{
			Body: []byte(strconv.Itoa(i)), Expiration: strconv.FormatInt(ttl, 10),
			Headers: amqp091.Table{"due": time.Now().UnixMilli() + ttl},
		})
		check(l.t, err)
		if i%1000 == 999 && !last.Wait() {
			l.t.Fatal("a publish was not confirmed")
		}
	}
}

// contend holds each delivery until within 3 ms of its deadline, on either side, and then acks it, or gives it back. Its prefetch is full
// most of the time, so that what is behind expires in the queue, eagerly or met by the next delivery.
func (l *endings) contend(c *curfew, queue string, seed uint64) {
	ch := openChannel(l.t, dial(l.t, c.url))
	check(l.t, ch.Qos(racePrefetch, 0, false))
	deliveries, err := ch.Consume(queue, fmt.Sprint("contender-", seed), false, false, false, false, nil)
	check(l.t, err)
	random := rand.New(rand.NewPCG(seed, 5))
	go func() {
		for d := range deliveries {
			due, _ := d.Headers["due"].(int64)
			aim := time.UnixMilli(due).Add(time.Duration(random.Int64N(6000)-3000) * time.Microsecond)
			back := random.IntN(3) == 0
			time.AfterFunc(time.Until(aim), func() { l.settle(d, back) })
		}
	}()
}

func (l *endings) settle(d amqp091.Delivery, back bool) {
	if back {
		if err := d.Nack(false, true); err != nil {
			l.t.Errorf("nack: %v", err)
		}
		return
	}
	l.end(string(d.Body), "acked")
	if err := d.Ack(false); err != nil {
		l.t.Errorf("ack: %v", err)
	}
}
