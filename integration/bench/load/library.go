package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// libraryProducer is a producer written with amqp091-go, as an application would be.
type libraryProducer struct {
	number   int
	conn     *amqp091.Connection
	ch       *amqp091.Channel
	keys     []string
	window   *window
	confirms *confirms // nil: no confirms
}

func newLibraryProducer(s *Spec, i int) (*libraryProducer, error) {
	conn, ch, err := openLibrary(s.URL)
	if err != nil {
		return nil, err
	}
	p := &libraryProducer{number: i, conn: conn, ch: ch, window: newWindow(s.Window)}
	for _, q := range portion(i, s.Producers, s.Queues) {
		p.keys = append(p.keys, s.key(q))
	}
	if s.Window > 0 {
		p.confirms = newConfirms(s.Window)
		err = ch.Confirm(false)
	}
	return p, err
}

// failOnClose fails the run when the connection or a channel is closed, unless the run is
// over.
func failOnClose(r *run, closed <-chan *amqp091.Error) {
	if reason := <-closed; reason != nil && !r.stopping.Load() {
		r.fail(fmt.Errorf("load: closed: %w", reason))
	}
}

func openLibrary(url string) (*amqp091.Connection, *amqp091.Channel, error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	return conn, ch, err
}

// stop leaves it to work to close the connection, between two messages. A write that the
// broker holds back ends later.
func (p *libraryProducer) stop() {
	p.window.close()
	time.AfterFunc(closeTimeout, func() { p.conn.CloseDeadline(time.Now()) }) //nolint:errcheck // it may be closed
}

func (p *libraryProducer) close() { p.conn.Close() }

func (p *libraryProducer) work(r *run) {
	closed := p.ch.NotifyClose(make(chan *amqp091.Error, 1)) // also for the connection
	go failOnClose(r, closed)
	var reading sync.WaitGroup
	if p.confirms != nil {
		p.confirms.measuring = &r.measuring
		confirmed := p.ch.NotifyPublish(make(chan amqp091.Confirmation, r.Window))
		reading.Go(func() { p.read(r, confirmed) })
	}
	r.clientEnded(p.write(r))
	<-r.over                                           // the whole Count may have been sent before
	p.conn.CloseDeadline(time.Now().Add(closeTimeout)) //nolint:errcheck // it may be closed
	reading.Wait()
	if p.confirms != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.confirm.Merge(&p.confirms.delays)
		r.nacked += p.confirms.nacked
	}
}

func (p *libraryProducer) read(r *run, confirmed <-chan amqp091.Confirmation) {
	for c := range confirmed {
		n := p.confirms.confirm(c.DeliveryTag, false, !c.Ack, r.now())
		if r.confirmed.Add(int64(n)); !c.Ack {
			r.backlog.give(n)
		}
		p.window.give(n)
	}
}

func (p *libraryProducer) write(r *run) error {
	body := make([]byte, r.Size)
	message := amqp091.Publishing{DeliveryMode: mode(r.Persist), Expiration: expiration(&r.Spec), Body: body}
	for sent := 0; !r.stopping.Load(); sent++ {
		if r.awaitAllowance(p.number, sent, 1) == 0 || p.window.take(1) == 0 || r.backlog.take(1) == 0 {
			break
		}
		now := r.now()
		if len(body) >= stampSize {
			binary.BigEndian.PutUint64(body, uint64(now))
		}
		if p.confirms != nil {
			p.confirms.add(1, now)
		}
		err := p.ch.PublishWithContext(context.Background(), r.exchangeName(), p.keys[sent%len(p.keys)], false, false, message)
		if err != nil {
			return ignoreClosed(err)
		}
		r.published.Add(1)
	}
	return nil
}

// ignoreClosed treats the error of a closed connection as a normal end: failOnClose reports
// the reason.
func ignoreClosed(err error) error {
	if errors.Is(err, amqp091.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

// libraryConsumer is a consumer written with amqp091-go, as an application would be.
type libraryConsumer struct {
	conn       *amqp091.Connection
	closed     []chan *amqp091.Error // for each of its channels
	deliveries []<-chan amqp091.Delivery
	latency    Histogram
	mu         sync.Mutex
}

func newLibraryConsumer(s *Spec, i int) (*libraryConsumer, error) {
	conn, ch, err := openLibrary(s.URL)
	if err != nil {
		return nil, err
	}
	c := &libraryConsumer{conn: conn}
	err = c.open(s, ch)
	for n, q := range portion(i, s.Consumers, s.Queues) {
		if n > 0 && err == nil && s.Ack == "multiple" { // a multiple ack covers all queues of a channel, so each queue has its own
			if ch, err = conn.Channel(); err == nil {
				err = c.open(s, ch)
			}
		}
		if err != nil {
			return c, err
		}
		deliveries, failed := ch.Consume(s.QueueName(q), "", s.Ack == "auto", false, false, false, nil)
		c.deliveries, err = append(c.deliveries, deliveries), failed
	}
	return c, err
}

// open prepares a channel.
func (c *libraryConsumer) open(s *Spec, ch *amqp091.Channel) error {
	c.closed = append(c.closed, ch.NotifyClose(make(chan *amqp091.Error, 1)))
	if s.Prefetch == 0 || s.Ack == "auto" {
		return nil
	}
	return ch.Qos(s.Prefetch, 0, false)
}

func (c *libraryConsumer) stop()  { c.conn.Close() }
func (c *libraryConsumer) close() { c.conn.Close() }

func (c *libraryConsumer) work(r *run) {
	for _, closed := range c.closed {
		go failOnClose(r, closed)
	}
	var reading sync.WaitGroup
	for _, deliveries := range c.deliveries {
		reading.Go(func() { r.clientEnded(c.read(r, deliveries)) })
	}
	reading.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latency.Merge(&c.latency)
}

// ackEvery is how many deliveries an application with Ack "multiple" settles with one ack;
// at most half of the prefetch limit.
const ackEvery = 100

func (c *libraryConsumer) read(r *run, deliveries <-chan amqp091.Delivery) error {
	n, every := 0, ackEvery
	if r.Prefetch > 0 {
		every = max(1, min(ackEvery, r.Prefetch/2))
	}
	for d := range deliveries {
		if len(d.Body) >= stampSize && r.measuring.Load() {
			c.mu.Lock()
			c.latency.Record(time.Duration(r.now() - int64(binary.BigEndian.Uint64(d.Body))))
			c.mu.Unlock()
		}
		n++
		r.consumed.Add(1)
		r.backlog.give(1)
		if r.Ack == "each" || r.Ack == "multiple" && n%every == 0 {
			if err := d.Ack(r.Ack == "multiple"); err != nil {
				return ignoreClosed(err)
			}
		}
	}
	return nil
}
