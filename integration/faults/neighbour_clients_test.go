//go:build !race

package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
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
// reads, whose messages expire into a dead-letter queue that is consumed; and a queue that is consumed. All is persistent. Its clients
// speak AMQP 0-9-1, or AMQP 1.0.
type neighbour struct {
	p         *process
	bodyBytes int
	ctx       context.Context // of clients of AMQP 1.0
	leave     func()          // closes its connections, and waits for nobody
	publish   func(number int, queue string, ttlMillis int64, body []byte) error
	cut       chan struct{}             // closed when no more confirms will come
	published chan struct{}             // closed when the last message is sent, or none can be
	end       atomic.Pointer[time.Time] // until when it publishes, once that is known

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

// victimVariable, if it is 1.0, has the neighbour's clients speak AMQP 1.0 whatever the attack.
const victimVariable = "FAULTS_VICTIM"

func newNeighbour(t *testing.T, p *process, a *attack) *neighbour {
	t.Helper()
	n := &neighbour{p: p, bodyBytes: cmp.Or(a.bodyBytes, neighbourBody), cut: make(chan struct{}), published: make(chan struct{})}
	url := urlOf(p.address(), "guest", neighbourVHost)
	publishing, err := amqp091.Dial(url)
	check(t, err)
	ch, err := publishing.Channel()
	check(t, err)
	declareDying(t, ch)
	_, err = ch.QueueDeclare(work, true, false, false, false, nil)
	check(t, err)
	if a.over10 || os.Getenv(victimVariable) == "1.0" {
		check(t, publishing.Close())
		n.over10(t)
		return n
	}
	consuming, err := amqp091.Dial(url)
	check(t, err)
	n.leave = func() {
		for _, conn := range []*amqp091.Connection{publishing, consuming} {
			_ = conn.CloseDeadline(time.Now().Add(time.Second)) // it may be gone
		}
	}
	check(t, ch.Confirm(false))
	n.publish = func(number int, queue string, ttlMillis int64, body []byte) error {
		m := amqp091.Publishing{MessageId: strconv.Itoa(number), DeliveryMode: amqp091.Persistent, Body: body}
		if ttlMillis > 0 {
			m.Expiration = strconv.FormatInt(ttlMillis, 10)
		}
		return ch.Publish("", queue, false, false, m)
	}
	go n.listen(ch.NotifyPublish(make(chan amqp091.Confirmation, 1000)))
	for _, queue := range []string{dead, work} {
		ch, err := consuming.Channel()
		check(t, err)
		check(t, ch.Qos(1000, 0, false))
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		check(t, err)
		go n.consume(deliveries)
	}
	return n
}

// over10 connects clients of AMQP 1.0.
func (n *neighbour) over10(t *testing.T) {
	t.Helper()
	var publishing, consuming *goamqp.Conn
	n.ctx, n.leave = context.WithCancel(context.Background())
	session := func(conn **goamqp.Conn) *goamqp.Session {
		var err error
		*conn, err = goamqp.Dial(n.ctx, "amqp://"+n.p.address(), &goamqp.ConnOptions{
			HostName: "vhost:" + neighbourVHost, SASLType: goamqp.SASLTypePlain("guest", "guest"),
		})
		check(t, err)
		s, err := (*conn).NewSession(n.ctx, nil)
		check(t, err)
		return s
	}
	senders, s := map[string]*goamqp.Sender{}, session(&publishing)
	for _, queue := range []string{waiting, work} {
		sender, err := s.NewSender(n.ctx, "/queues/"+queue, nil)
		check(t, err)
		senders[queue] = sender
	}
	n.publish = func(number int, queue string, ttlMillis int64, body []byte) error {
		receipt, err := senders[queue].SendWithReceipt(n.ctx, &goamqp.Message{
			Header:     &goamqp.MessageHeader{Durable: true, TTL: time.Duration(ttlMillis) * time.Millisecond},
			Properties: &goamqp.MessageProperties{MessageID: strconv.Itoa(number)}, Data: [][]byte{body},
		}, nil)
		if err == nil {
			go func() {
				if state, err := receipt.Wait(n.ctx); err == nil {
					_, accepted := state.(*goamqp.StateAccepted)
					n.confirm(number, accepted)
				}
			}()
		}
		return err
	}
	s = session(&consuming)
	for _, queue := range []string{dead, work} {
		receiver, err := s.NewReceiver(n.ctx, "/queues/"+queue, &goamqp.ReceiverOptions{Credit: 1000})
		check(t, err)
		go func() {
			for {
				m, err := receiver.Receive(n.ctx, nil)
				if err != nil {
					return
				}
				n.arrive(fmt.Sprint(m.Properties.MessageID))
				_ = receiver.AcceptMessage(n.ctx, m) // the connection's end shows in what does not come
			}
		}()
	}
	go func() {
		<-publishing.Done()
		close(n.cut)
	}()
	stop := n.leave
	n.leave = func() {
		stop()
		for _, conn := range []*goamqp.Conn{publishing, consuming} {
			go conn.Close() // it may be gone
		}
	}
}

// start has it publish until finish is called.
func (n *neighbour) start() {
	go func() {
		defer close(n.published)
		for tick := time.Now(); n.end.Load() == nil || tick.Before(*n.end.Load()); tick = tick.Add(neighbourTick) {
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
	queue := work
	if ttlMillis > 0 {
		queue = waiting
	}
	n.mu.Lock()
	number := len(n.notes)
	n.notes = append(n.notes, note{planned: planned.UnixMicro(), sent: now(), ttlMillis: ttlMillis})
	n.mu.Unlock()
	return n.publish(number, queue, ttlMillis, noise[number%1000:][:n.bodyBytes])
}

func (n *neighbour) listen(confirms <-chan amqp091.Confirmation) {
	defer close(n.cut)
	for c := range confirms {
		n.confirm(int(c.DeliveryTag-1), c.Ack)
	}
}

func (n *neighbour) confirm(number int, accepted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &n.notes[number]
	m.confirmed, m.refused = now(), !accepted
}

func (n *neighbour) consume(deliveries <-chan amqp091.Delivery) {
	for d := range deliveries {
		n.arrive(d.MessageId)
		_ = d.Ack(false) // the connection's end shows in what does not come
	}
}

func (n *neighbour) arrive(id string) {
	at := now()
	number, err := strconv.Atoi(id)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && number < len(n.notes) {
		m := &n.notes[number]
		if m.arrivals++; m.arrivals == 1 {
			m.arrived = at
		}
	}
}

// finish waits until all that was to be sent before an instant is sent, confirmed and has arrived, or no longer can.
func (n *neighbour) finish(end time.Time) {
	n.end.Store(&end)
	over := time.After(time.Until(end.Add(drainFor)))
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
