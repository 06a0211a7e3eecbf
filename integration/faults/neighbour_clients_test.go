//go:build !race

package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	neighbourVHost = "neighbour"
	neighbourBody  = 100
	neighbourTick  = 5 * time.Millisecond
	deadlinesATick = 5 // 1,000/s
	consumedATick  = 1 // 200/s

	shortestMillis, longestMillis = 50, 600
)

// neighbour is a virtual host with honest clients: a publisher with confirms, at a steady pace whatever comes back; a queue nobody
// reads, whose messages expire into a dead-letter queue that is consumed; and a queue that is consumed. All is persistent.
type neighbour struct {
	p                     *process
	bodyBytes             int
	publishing, consuming *amqp091.Connection
	ch                    *amqp091.Channel
	cut                   chan struct{} // closed when no more confirms will come
	published             chan struct{} // closed when the last message is sent, or none can be

	mu    sync.Mutex
	notes []note // by message
}

// note is what is known of a message. Instants are Unix µs, 0: not yet.
type note struct {
	planned   int64 // when it was to be sent
	sent      int64 // taken right before
	confirmed int64
	arrived   int64 // at the consumer of its queue, or of the dead letters
	ttlMillis int64 // 0: it is for the consumer of its queue
	arrivals  int
	refused   bool
}

func newNeighbour(t *testing.T, p *process, bodyBytes int) *neighbour {
	t.Helper()
	if bodyBytes == 0 {
		bodyBytes = neighbourBody
	}
	n := &neighbour{p: p, bodyBytes: bodyBytes, cut: make(chan struct{}), published: make(chan struct{})}
	var err error
	url := urlOf(p.address(), "guest", neighbourVHost)
	n.publishing, err = amqp091.Dial(url)
	check(t, err)
	n.consuming, err = amqp091.Dial(url)
	check(t, err)
	n.ch, err = n.publishing.Channel()
	check(t, err)
	declareDying(t, n.ch)
	_, err = n.ch.QueueDeclare(work, true, false, false, false, nil)
	check(t, err)
	check(t, n.ch.Confirm(false))
	for _, queue := range []string{dead, work} {
		ch, err := n.consuming.Channel()
		check(t, err)
		check(t, ch.Qos(1000, 0, false))
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		check(t, err)
		go n.consume(deliveries)
	}
	go n.listen(n.ch.NotifyPublish(make(chan amqp091.Confirmation, 1000)))
	return n
}

// leave closes its connections, and waits for nobody.
func (n *neighbour) leave() {
	for _, conn := range []*amqp091.Connection{n.publishing, n.consuming} {
		_ = conn.CloseDeadline(time.Now().Add(time.Second)) // it may be gone
	}
}

// start has it publish until an instant.
func (n *neighbour) start(end time.Time) {
	go func() {
		defer close(n.published)
		for tick := time.Now(); tick.Before(end); tick = tick.Add(neighbourTick) {
			select {
			case <-time.After(time.Until(tick)):
			case <-n.cut:
				return
			}
			for range deadlinesATick {
				if n.send(tick, shortestMillis+rand.Int64N(longestMillis-shortestMillis)) != nil {
					return
				}
			}
			for range consumedATick {
				if n.send(tick, 0) != nil {
					return
				}
			}
		}
	}()
}

func (n *neighbour) send(planned time.Time, ttlMillis int64) error {
	queue, expiration := work, ""
	if ttlMillis > 0 {
		queue, expiration = waiting, strconv.FormatInt(ttlMillis, 10)
	}
	n.mu.Lock()
	number := len(n.notes)
	n.notes = append(n.notes, note{planned: planned.UnixMicro(), sent: now(), ttlMillis: ttlMillis})
	n.mu.Unlock()
	return n.ch.Publish("", queue, false, false, amqp091.Publishing{
		MessageId: strconv.Itoa(number), DeliveryMode: amqp091.Persistent, Expiration: expiration, Body: noise[number%1000:][:n.bodyBytes],
	})
}

func (n *neighbour) listen(confirms <-chan amqp091.Confirmation) {
	defer close(n.cut)
	for c := range confirms {
		n.mu.Lock()
		m := &n.notes[c.DeliveryTag-1]
		m.confirmed, m.refused = now(), !c.Ack
		n.mu.Unlock()
	}
}

func (n *neighbour) consume(deliveries <-chan amqp091.Delivery) {
	for d := range deliveries {
		at := now()
		number, err := strconv.Atoi(d.MessageId)
		n.mu.Lock()
		if err == nil && number < len(n.notes) {
			m := &n.notes[number]
			if m.arrivals++; m.arrivals == 1 {
				m.arrived = at
			}
		}
		n.mu.Unlock()
		_ = d.Ack(false) // the connection's end shows in what does not come
	}
}

// finish waits until all has been sent, confirmed and has arrived, or no longer can.
func (n *neighbour) finish(last time.Time) {
	over := time.After(time.Until(last))
	select {
	case <-n.published:
	case <-over:
		return
	case <-n.p.exited:
		return
	}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !n.complete() {
		select {
		case <-poll.C:
		case <-over:
			return
		case <-n.cut:
			return
		}
	}
}

func (n *neighbour) complete() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !slices.ContainsFunc(n.notes, func(m note) bool { return m.confirmed == 0 || m.arrived == 0 && !m.refused })
}

// wrong is what no noise excuses: a message that is lost (or that late), refused, early, or there twice.
func (n *neighbour) wrong() (texts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	counts := map[string]int{}
	for _, m := range n.notes {
		for what, is := range map[string]bool{
			"were not answered":              m.confirmed == 0,
			"were refused":                   m.refused,
			"were confirmed, and never came": m.confirmed > 0 && !m.refused && m.arrived == 0,
			"came before their deadline":     m.arrived > 0 && m.arrived < m.sent+m.ttlMillis*1000,
			"were delivered more than once":  m.arrivals > 1,
		} {
			if is {
				counts[what]++
			}
		}
	}
	for what, count := range counts {
		texts = append(texts, fmt.Sprintf("of %d messages of the neighbour %d %s", len(n.notes), count, what))
	}
	slices.Sort(texts)
	return texts
}

// figures are what it waited for from one instant on until another: deadlines that were due then, confirms and deliveries
// of what was to be sent then. A publish that could not be written in time counts from when it was to be. A deadline is
// counted from the confirm, since somewhere before it the time to live began. Only a confirm waits for the disk.
func (n *neighbour) figures(machine *machine, from, to time.Time) figures {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := figures{
		waits{name: "deadlines", stalls: &machine.processor}, waits{name: "confirms", stalls: &machine.disk},
		waits{name: "deliveries", stalls: &machine.processor},
	}
	in := func(at int64) bool { return from.UnixMicro() <= at && at < to.UnixMicro() }
	for _, m := range n.notes {
		if m.confirmed > 0 && in(m.planned) {
			f.confirms.add(m.planned, m.confirmed)
		}
		switch due := m.confirmed + m.ttlMillis*1000; {
		case m.arrived == 0:
		case m.ttlMillis > 0 && m.confirmed > 0 && in(due):
			f.deadlines.add(due, m.arrived)
		case m.ttlMillis == 0 && in(m.planned):
			f.deliveries.add(m.planned, m.arrived)
		}
	}
	for _, w := range f.all() {
		slices.Sort(w.gross)
		slices.Sort(w.net)
		w.span = to.Sub(from)
		w.stalled, w.count = w.stalls.within(from.UnixMicro(), to.UnixMicro())
	}
	return f
}
