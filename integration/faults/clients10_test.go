package faults

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	goamqp "github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// The clients of AMQP 1.0 have the shape of those of 0-9-1, so that they share queues, messages and one history with them.

// newPublisher10 is a publisher over AMQP 1.0. Its transfers are unsettled: accepted is what a confirm is.
func newPublisher10(tr *trial, conn *goamqp.Conn, name string) (*publisher, error) {
	ctx := context.Background() // the connection's end ends everything
	s, err := conn.NewSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	type unsettled struct {
		id      string
		receipt goamqp.SendReceipt
	}
	p := &publisher{log: tr.log, name: name, slots: make(chan struct{}, unconfirmed), cut: make(chan struct{})}
	senders, sent := map[string]*goamqp.Sender{}, make(chan unsettled, unconfirmed)
	p.put = func(exchange, key string, m *amqp091.Publishing) error {
		address := "/queues/" + key
		if exchange != "" {
			address = "/exchanges/" + exchange
		}
		if senders[address] == nil {
			if senders[address], err = s.NewSender(ctx, address, nil); err != nil {
				delete(senders, address)
				return err
			}
		}
		receipt, err := senders[address].SendWithReceipt(ctx, message10(m), nil)
		if err == nil {
			sent <- unsettled{m.MessageId, receipt}
		}
		return err
	}
	go func() {
		defer close(p.cut)
		for {
			select {
			case m := <-sent:
				if state, err := m.receipt.Wait(ctx); err == nil {
					_, accepted := state.(*goamqp.StateAccepted)
					p.answered(m.id, accepted)
					tr.accepted10.Add(1)
				}
			case <-conn.Done():
				return
			}
		}
	}()
	return p, nil
}

func message10(p *amqp091.Publishing) *goamqp.Message {
	h := &goamqp.MessageHeader{Durable: p.DeliveryMode == amqp091.Persistent, Priority: 4}
	if p.Expiration != "" {
		h.TTL, _ = time.ParseDuration(p.Expiration + "ms") // it is a number
	}
	return &goamqp.Message{
		Header: h, Annotations: goamqp.Annotations{"x-basic-type": p.Type}, ApplicationProperties: p.Headers, Data: [][]byte{p.Body},
		Properties: &goamqp.MessageProperties{MessageID: p.MessageId, ContentType: &p.ContentType},
	}
}

// link10 is a session with one receiver. Each of its outcomes waits until the broker has settled it, too.
type link10 struct {
	ctx     context.Context
	cancel  func()
	session *goamqp.Session
	*goamqp.Receiver

	mu     sync.Mutex
	held   map[uint64]*goamqp.Message // by delivery tag
	failed error
}

// consume10 consumes from a queue over AMQP 1.0.
func consume10(tr *trial, conn *goamqp.Conn, queue string) (channel, <-chan amqp091.Delivery, error) {
	l := &link10{held: map[uint64]*goamqp.Message{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	var err error
	if l.session, err = conn.NewSession(l.ctx, nil); err != nil {
		return nil, nil, err
	}
	second := goamqp.ReceiverSettleModeSecond
	if l.Receiver, err = l.session.NewReceiver(l.ctx, "/queues/"+queue, &goamqp.ReceiverOptions{Credit: prefetch, SettlementMode: &second}); err != nil {
		return nil, nil, err
	}
	deliveries := make(chan amqp091.Delivery)
	go l.run(deliveries, &tr.delivered10)
	return l, deliveries, nil
}

func (l *link10) run(deliveries chan<- amqp091.Delivery, count *atomic.Int64) {
	defer close(deliveries)
	for tag := uint64(1); ; tag++ {
		m, err := l.Receive(l.ctx, nil)
		if err != nil {
			return
		}
		l.mu.Lock()
		l.held[tag] = m
		l.mu.Unlock()
		select {
		case deliveries <- l.delivery(tag, m):
			count.Add(1)
		case <-l.ctx.Done():
			return
		}
	}
}

// delivery is a message as a client of 0-9-1 would have got it.
func (l *link10) delivery(tag uint64, m *goamqp.Message) amqp091.Delivery {
	d := amqp091.Delivery{Acknowledger: l, DeliveryTag: tag, Redelivered: !m.Header.FirstAcquirer, Headers: amqp091.Table{}, Body: m.GetData()}
	d.MessageId, _ = m.Properties.MessageID.(string)
	d.Type, _ = m.Annotations["x-basic-type"].(string)
	if m.Properties.ContentType != nil {
		d.ContentType = *m.Properties.ContentType
	}
	for key, v := range m.Annotations {
		if name, ok := key.(string); ok {
			d.Headers[name] = v
		}
	}
	for name, v := range m.ApplicationProperties {
		d.Headers[name] = v
	}
	return d
}

func (l *link10) settle(tag uint64, how func(context.Context, *goamqp.Message) error) error {
	l.mu.Lock()
	m := l.held[tag]
	delete(l.held, tag)
	l.mu.Unlock()
	err := how(context.Background(), m)
	if err != nil {
		l.failed = err
	}
	return err
}

// Ack accepts.
func (l *link10) Ack(tag uint64, _ bool) error { return l.settle(tag, l.AcceptMessage) }

// Nack releases.
func (l *link10) Nack(tag uint64, _, _ bool) error { return l.settle(tag, l.ReleaseMessage) }

// Reject rejects.
func (l *link10) Reject(tag uint64, _ bool) error {
	return l.settle(tag, func(ctx context.Context, m *goamqp.Message) error { return l.RejectMessage(ctx, m, nil) })
}

// Qos reports whether all outcomes have been settled.
func (l *link10) Qos(int, int, bool) error { return l.failed }

// Close ends the session, which gives back what it holds.
func (l *link10) Close() error {
	l.cancel()
	return l.session.Close(context.Background())
}
