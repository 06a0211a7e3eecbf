package load

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// libraryProducer is a producer as an application writes one with amqp091-go.
type libraryProducer struct {
	conn   *amqp091.Connection
	ch     *amqp091.Channel
	keys   []string
	window *window
}

func newLibraryProducer(s *Spec, i int) (*libraryProducer, error) {
	conn, ch, err := openLibrary(s.URL)
	if err != nil {
		return nil, err
	}
	p := &libraryProducer{conn: conn, ch: ch, window: newWindow(s.Window)}
	for _, q := range share(i, s.Producers, s.Queues) {
		p.keys = append(p.keys, s.key(q))
	}
	if s.Window > 0 {
		err = ch.Confirm(false)
	}
	return p, err
}

func openLibrary(url string) (*amqp091.Connection, *amqp091.Channel, error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	return conn, ch, err
}

func (p *libraryProducer) stop() {
	p.window.close()
	p.conn.Close()
}

func (p *libraryProducer) work(r *run) {
	var reading sync.WaitGroup
	confirmed := make(chan amqp091.Confirmation, max(1, r.Window))
	if r.Window > 0 {
		p.ch.NotifyPublish(confirmed)
		reading.Go(func() {
			for range confirmed {
				r.confirmed.Add(1)
				p.window.give(1)
			}
		})
	}
	r.ended(p.write(r))
	reading.Wait()
}

func (p *libraryProducer) write(r *run) error {
	body := make([]byte, r.Size)
	message := amqp091.Publishing{DeliveryMode: mode(r.Persist), Expiration: expiration(&r.Spec), Body: body}
	for sent := 0; !r.stopping.Load(); sent++ {
		if r.allowed(sent, 1) == 0 || p.window.take(1) == 0 || r.backlog.take(1) == 0 {
			break
		}
		if len(body) >= stampSize {
			binary.BigEndian.PutUint64(body, uint64(r.now()))
		}
		err := p.ch.PublishWithContext(context.Background(), r.exchangeName(), p.keys[sent%len(p.keys)], false, false, message)
		if err != nil {
			return quietly(err)
		}
		r.published.Add(1)
	}
	return nil
}

// quietly makes the end of a closed connection the end of any other.
func quietly(err error) error {
	if errors.Is(err, amqp091.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

// libraryConsumer is a consumer as an application writes one with amqp091-go.
type libraryConsumer struct {
	conn       *amqp091.Connection
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
	if s.Prefetch > 0 && s.Ack != "auto" {
		err = ch.Qos(s.Prefetch, 0, false)
	}
	for _, q := range share(i, s.Consumers, s.Queues) {
		deliveries, failed := ch.Consume(queueName(q), "", s.Ack == "auto", false, false, false, nil)
		c.deliveries = append(c.deliveries, deliveries)
		err = errors.Join(err, failed)
	}
	return c, err
}

func (c *libraryConsumer) stop() { c.conn.Close() }

func (c *libraryConsumer) work(r *run) {
	var reading sync.WaitGroup
	for _, deliveries := range c.deliveries {
		reading.Go(func() { r.ended(c.read(r, deliveries)) })
	}
	reading.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latency.Merge(&c.latency)
}

// ackEvery is how many deliveries one ack of an application that acks multiple settles.
const ackEvery = 100

func (c *libraryConsumer) read(r *run, deliveries <-chan amqp091.Delivery) error {
	n := 0
	for d := range deliveries {
		if len(d.Body) >= stampSize && r.measuring.Load() {
			c.mu.Lock()
			c.latency.Record(time.Duration(r.now() - int64(binary.BigEndian.Uint64(d.Body))))
			c.mu.Unlock()
		}
		n++
		r.consumed.Add(1)
		r.backlog.give(1)
		if r.Ack == "each" || r.Ack == "multiple" && n%ackEvery == 0 {
			if err := d.Ack(r.Ack == "multiple"); err != nil {
				return quietly(err)
			}
		}
	}
	return nil
}
