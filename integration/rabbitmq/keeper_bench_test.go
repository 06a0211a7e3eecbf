package rabbitmq

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/keeper"
)

// BenchmarkKeeper measures how late messages arrive at their dead-letter queue when held messages fall due at a steady
// rate, at random places of the queue, and how long the release of the rest takes:
//
//	go test -run '^$' -bench Keeper -benchtime 1x ./integration/rabbitmq
//	KEEPER_HELD=1000000 go test -run '^$' -bench Keeper/quorum -benchtime 1x -timeout 30m ./integration/rabbitmq
//
// RabbitMQ, the keeper, the publisher and the reader of the dead letters share the machine, so the figures are upper
// bounds. Two other figures show what a busy machine adds: ping is from publishing to a consumer of a plain queue of the same
// type, and alone is the lateness of messages with one common TTL in a queue that nobody keeps, where RabbitMQ is exact by
// itself. Both are measured in the same seconds; ratio-p50 and ratio-p99 are the lateness divided by that of alone.
//
// p50 and p99 count from the instant before publishing, and so blame the keeper for messages that wait in the publisher's
// socket during the fill. since-receipt counts from when the message has reached the keeper. The parts of a message's way, as
// means: receipt is from publishing to the keeper, timer from the deadline until it is given back, expiry from then to the
// reader of the dead letters.
//
// warm-p99 leaves out the first second: then the process of a classic queue that was idle grows its memory again, and stops
// for up to 35 ms at a time while it does (RabbitMQ 3.10.8, 10,000 held).
func BenchmarkKeeper(b *testing.B) {
	const rate, during = 1000, 4 * time.Second
	held := 10_000
	if text := os.Getenv("KEEPER_HELD"); text != "" {
		var err error
		held, err = strconv.Atoi(text)
		check(b, err)
	}
	for _, kind := range queueTypes {
		b.Run(fmt.Sprintf("%s/held=%d/due=%d", kind, held, rate), func(b *testing.B) {
			n := sharedNode(b)
			for i := range b.N {
				_, url := n.vhost(b)
				q := declareKept(b, url, string(kind)+strconv.Itoa(i), kind, nil)
				measure(b, q, held, rate, during)
			}
		})
	}
}

// measure fills the queue with held messages that stay and rate*during that fall due after the fill, mixed at random.
func measure(b *testing.B, q *keptQueue, held, rate int, during time.Duration) {
	r := q.keep(b, func(o *keeper.Options) { o.MaxMessages = 2 * held })
	r.reach(b, keeper.Keeping, 0)
	due := int(during.Seconds() * float64(rate))
	order := rand.New(rand.NewPCG(1, 1)).Perm(held + due)
	const sample = 2000
	filling := time.Now()
	q.fill(sample, func(n int) string { return strconv.Itoa(n - sample) }, func(int) time.Duration { return time.Hour })
	allowed := 10*time.Second + 4*time.Since(filling)*time.Duration(len(order)/sample)
	begin := time.Now().Add(allowed) // the fill takes less
	held += sample
	for i := 0; i < len(order); {
		if k := order[i]; k < due { // alone, since messages that wait in the publisher's socket look late
			q.publish(strconv.Itoa(i), time.Until(begin.Add(during*time.Duration(k)/time.Duration(due))))
			i++
			continue
		}
		stay := i + 1
		for stay < len(order) && order[stay] >= due {
			stay++
		}
		first := i
		q.fill(stay-first, func(n int) string { return strconv.Itoa(first + n) }, func(int) time.Duration { return time.Hour })
		i = stay
	}
	if time.Now().After(begin) {
		b.Fatalf("the machine is too busy: the fill took longer than %v", allowed)
	}
	b.Logf("filled in %v of %v", time.Since(filling), allowed)
	report := func(name string, d time.Duration) { b.ReportMetric(float64(d.Microseconds())/1000, name) }
	c := newControl(b, q)
	time.Sleep(time.Until(begin.Add(-c.ttl)))
	c.run(during)
	q.expectDead(due, answerLimit+during)
	r.reach(b, keeper.Keeping, held)
	late, alone := q.lateness(), c.alone.lateness()
	report("p50-ms", percentile(late, 0.5))
	report("p99-ms", percentile(late, 0.99))
	report("max-ms", late[len(late)-1])
	report("warm-p99-ms", percentile(q.latenessSince(begin.Add(time.Second)), 0.99))
	report("ping-p50-ms", percentile(c.pings, 0.5))
	report("ping-p99-ms", percentile(c.pings, 0.99))
	report("alone-p50-ms", percentile(alone, 0.5))
	report("alone-p99-ms", percentile(alone, 0.99))
	b.ReportMetric(float64(percentile(late, 0.5))/float64(percentile(alone, 0.5)), "ratio-p50")
	b.ReportMetric(float64(percentile(late, 0.99))/float64(percentile(alone, 0.99)), "ratio-p99")
	eventually(b, answerLimit, "reports", func() bool { c := r.Status().Counts; return c.Expired >= c.GivenBack })
	hops(b, q, r, report)
	r.stop()
	s := r.Status()
	report("release-ms", s.LastRelease.Took)
	drained := time.Now()
	ids := q.drain(b, held)
	b.Logf("%d messages consumed in %v", held, time.Since(drained))
	b.ReportMetric(float64(breaks(ids)), "breaks")
	b.ReportMetric(float64(s.Counts.Early), "early")
	b.ReportMetric(0, "ns/op")
}

// hops reports the mean time that messages spend on each part of their way.
func hops(b *testing.B, q *keptQueue, r *running, report func(string, time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	// The deadlines counted from publishing and from receipt, and when messages were given back and came as dead letters.
	var published, received, given, arrived []deadline.Instant
	var own, late []time.Duration
	for id, l := range q.letters {
		published, arrived = append(published, deadline.At(q.deadline[id])), append(arrived, deadline.At(l.at))
	}
	slices.SortFunc(r.expired, func(a, b keeper.Expiry) int { return cmp.Compare(a.GivenBack, b.GivenBack) })
	slices.Sort(arrived) // they arrive as they were given back
	for _, e := range r.expired {
		received, given = append(received, e.Deadline), append(given, e.GivenBack)
		own = append(own, e.GivenBack.Sub(e.Deadline))
	}
	if len(received) != len(published) {
		b.Errorf("%d expiries of %d", len(received), len(published))
		return
	}
	for i := range arrived {
		late = append(late, arrived[i].Sub(received[i]))
	}
	slices.Sort(own)
	slices.Sort(late)
	report("since-receipt-p50-ms", percentile(late, 0.5))
	report("since-receipt-p99-ms", percentile(late, 0.99))
	report("receipt-ms", mean(published, received))
	report("timer-ms", mean(received, given))
	report("timer-p99-ms", percentile(own, 0.99))
	report("expiry-ms", mean(given, arrived))
}

// mean is the mean time from one list of instants to another.
func mean(from, to []deadline.Instant) (d time.Duration) {
	for i := range from {
		d += to[i].Sub(from[i]) / time.Duration(len(from))
	}
	return d
}

// control measures what RabbitMQ does by itself at the same time.
type control struct {
	ttl   time.Duration
	alone *keptQueue // with one TTL, kept by nobody
	ping  string     // a queue
	ch    *amqp091.Channel
	pings []time.Duration // sorted, in the end

	mu   sync.Mutex
	sent map[string]time.Time
}

const controlRate = 100

func newControl(b *testing.B, q *keptQueue) *control {
	c := &control{ttl: 2 * time.Second, alone: declareKept(b, q.url, q.name+".alone", q.facts.Type, nil), ping: q.name + ".ping", sent: map[string]time.Time{}}
	c.alone.truncated = time.Millisecond
	c.ch = openChannel(b, dial(b, q.url))
	_, err := c.ch.QueueDeclare(c.ping, true, false, false, false, amqp091.Table{"x-queue-type": string(q.facts.Type)})
	check(b, err)
	deliveries, err := openChannel(b, dial(b, q.url)).Consume(c.ping, "", true, false, false, false, nil)
	check(b, err)
	go func() {
		for d := range deliveries {
			c.mu.Lock()
			c.pings = append(c.pings, time.Since(c.sent[d.MessageId]))
			c.mu.Unlock()
		}
	}()
	return c
}

// run publishes messages that expire in the next `during` after the TTL, and pings then.
func (c *control) run(during time.Duration) {
	t := c.alone.t
	count := int(during.Seconds() * controlRate)
	pause := time.Second / controlRate
	for i, next := 0, time.Now(); i < count; i++ {
		time.Sleep(time.Until(next))
		next = next.Add(pause)
		c.alone.send(strconv.Itoa(i), c.ttl)
	}
	for i, next := 0, time.Now(); i < count/2; i++ {
		time.Sleep(time.Until(next))
		next = next.Add(pause)
		id := strconv.Itoa(i)
		c.mu.Lock()
		c.sent[id] = time.Now()
		c.mu.Unlock()
		check(t, c.ch.PublishWithContext(t.Context(), "", c.ping, false, false, amqp091.Publishing{MessageId: id, DeliveryMode: amqp091.Persistent}))
	}
	c.alone.expectDead(count, answerLimit)
	eventually(t, answerLimit, "pings", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.pings) == count/2 })
	slices.Sort(c.pings)
}
