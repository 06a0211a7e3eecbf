package faults

import (
	"fmt"
	"math/rand/v2"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/faults/history"
)

const (
	prefetch  = 30
	holdsMost = 10 // of the deliveries a worker keeps for later
	syncEvery = 20 // deliveries
)

// worker consumes from one queue as a busy and moody client would: it acks, rejects,
// gives back and holds, asks now and then whether all that has arrived, and comes back
// on another channel. Its broker knows it by either protocol.
type worker struct {
	log     *history.Log
	consume func(queue string) (channel, <-chan amqp091.Delivery, error)
	name    string
	queue   string
	random  *rand.Rand
	session int
}

// run works until the connection is cut.
func (w *worker) run() {
	for {
		s, err := w.open()
		if err != nil || !s.work() {
			return
		}
	}
}

// session is a channel with a consumer.
type session struct {
	*worker
	ch         channel
	by         string
	deliveries <-chan amqp091.Delivery
	held       []amqp091.Delivery
}

// channel is one of AMQP 0-9-1, or a link10.
type channel interface {
	Qos(prefetch, octets int, global bool) error
	Close() error
}

func (w *worker) open() (*session, error) {
	w.session++
	s := &session{worker: w, by: fmt.Sprintf("%s/%d", w.name, w.session)}
	w.log.Append(history.Event{Kind: history.Opened, At: now(), By: s.by, Queue: w.queue})
	var err error
	s.ch, s.deliveries, err = w.consume(w.queue)
	return s, err
}

// consume consumes from a queue on a channel of its own.
func consume(conn *amqp091.Connection, queue string) (channel, <-chan amqp091.Delivery, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return nil, nil, err
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	return ch, deliveries, err
}

// work takes some hundred deliveries and closes the channel; false when it was cut.
func (s *session) work() bool {
	for i := range 200 + s.random.IntN(400) {
		d, open := <-s.deliveries
		if !open {
			return false
		}
		s.take(&d, s.random.IntN(100))
		if i%syncEvery == syncEvery-1 && !s.sync() {
			return false
		}
	}
	return s.close()
}

func (s *session) take(d *amqp091.Delivery, mood int) {
	seen(s.log, s.by, s.queue, d)
	switch {
	case mood < 60:
		s.settle(d, history.Ack)
	case mood < 75:
		s.settle(d, history.Reject)
	case mood < 83:
		s.settle(d, history.Requeue)
	default:
		s.held = append(s.held, *d)
	}
	if len(s.held) > holdsMost {
		s.settle(&s.held[0], history.Ack)
		s.held = s.held[1:]
	}
}

func (s *session) settle(d *amqp091.Delivery, how history.Kind) { settle(s.log, s.by, s.queue, d, how) }

// sync is answered after all that was sent before has taken effect (AMQP 0-9-1 §4.7:
// a channel's methods are worked on in order).
func (s *session) sync() bool {
	if s.ch.Qos(prefetch, 0, false) != nil {
		return false
	}
	s.log.Append(history.Event{Kind: history.Synced, At: now(), By: s.by})
	return true
}

func (s *session) close() bool {
	s.log.Append(history.Event{Kind: history.Closed, At: now(), By: s.by})
	s.held = nil
	return s.ch.Close() == nil
}

// seen writes down a delivery.
func seen(log *history.Log, by, queue string, d *amqp091.Delivery) {
	from, _ := d.Headers["x-first-death-queue"].(string)
	reason, _ := d.Headers["x-first-death-reason"].(string)
	log.Append(history.Event{
		Kind: history.Delivered, At: now(), By: by, ID: d.MessageId, Queue: queue, Redelivered: d.Redelivered, From: from, Reason: reason,
		Sum: sum(d.MessageId, d.ContentType, d.Type, d.Headers, d.Body),
	})
}

// settle writes down what it then does. An error is the end of the connection, which
// the next read notices.
func settle(log *history.Log, by, queue string, d *amqp091.Delivery, how history.Kind) {
	from, _ := d.Headers["x-first-death-queue"].(string)
	log.Append(history.Event{Kind: how, At: now(), By: by, ID: d.MessageId, Queue: queue, From: from})
	var err error
	switch how {
	case history.Ack:
		err = d.Ack(false)
	case history.Reject:
		err = d.Reject(false)
	case history.Requeue:
		err = d.Nack(false, true)
	}
	if _, answered := d.Acknowledger.(*link10); answered && err == nil {
		log.Append(history.Event{Kind: history.Stored, At: now(), By: by})
	}
}
