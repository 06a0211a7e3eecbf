package deliveries

import (
	"fmt"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Consumer is one basic.consume on a channel. It implements broker.Sink and broker.LockHolder.
type Consumer struct {
	broker.Consumer
	Queue    *broker.Queue
	Prefetch int // its own limit of unacked deliveries; 0: no limit

	of        *Deliveries
	link      Link             // nil: of a client of AMQP 0-9-1
	linked    *broker.Delivery // scratch, with a link
	arguments []byte           // for display, encoded

	// Guarded by of.mu.
	inFlight int
	inLine   bool // in of.shared.line
	removed  bool // from of.consumers
}

// Link is where a consumer's messages go if they do not go by basic.deliver: that of a client of
// another protocol. Its functions are called with the locks of the deliveries and, but Ended, of the
// outbox.
type Link interface {
	// Credit reports whether one more message may be delivered.
	Credit() bool
	Deliver(o *Outbox, tag uint64, m *broker.Delivery)
	// Ended says that the queue is gone. It must not block.
	Ended()
}

// Pull delivers up to most messages, as far as the prefetch limit and the outbox allow.
func (c *Consumer) Pull(_ *broker.Consumer, src *broker.Source, most int) (taken int, more bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	o := c.of.out
	o.Lock()
	defer o.Unlock()
	for taken < most && c.creditLocked() && o.RoomLocked(&c.Consumer) {
		if !c.deliverLocked(o, src) {
			most = taken
			break
		}
		taken++
	}
	if taken > 0 {
		o.FlushLocked()
	}
	return taken, taken == most
}

// deliverLocked needs the lock of the outbox, too.
func (c *Consumer) deliverLocked(o *Outbox, src *broker.Source) bool {
	if c.link != nil {
		return c.deliverByLinkLocked(o, src)
	}
	var m broker.Delivery
	if !src.Next(&m) {
		return false
	}
	c.of.counts.Count(false, c.NoAck, m.Redelivered)
	o.DeliverLocked(c.of.channel, c.Tag, c.tagLocked(&m), &m)
	return true
}

// deliverByLinkLocked is deliverLocked for another protocol than AMQP 0-9-1.
func (c *Consumer) deliverByLinkLocked(o *Outbox, src *broker.Source) bool {
	m := c.linked // what an interface is called with is on the heap: one for all messages
	if !src.Next(m) {
		return false
	}
	c.of.counts.Count(false, c.NoAck, m.Redelivered)
	c.link.Deliver(o, c.tagLocked(m), m)
	return true
}

// creditLocked reports whether the prefetch limits allow one more delivery.
func (c *Consumer) creditLocked() bool {
	switch {
	case c.of.closed, c.Prefetch > 0 && c.inFlight >= c.Prefetch:
		return false
	case c.link != nil:
		return c.link.Credit()
	case c.of.shared.limit > 0:
		return c.of.shared.allows(c)
	}
	return true
}

func (c *Consumer) tagLocked(m *broker.Delivery) uint64 {
	if c.NoAck {
		return c.of.unacked.skip()
	}
	c.inFlight++
	c.of.shared.inFlight++
	return c.of.unacked.add(Unacked{Queue: c.Queue, Seq: m.Seq, Consumer: c, At: m.At, locked: m.Locked})
}

// Lapsed implements broker.LockHolder.
func (c *Consumer) Lapsed(id uint64, seq queue.Seq) bool { return c.of.Lapsed(id, seq) }

// Cancelled notifies a client that supports it that the queue is gone (RabbitMQ: Consumer
// Cancel Notification).
func (c *Consumer) Cancelled(*broker.Consumer) {
	d := c.of
	d.mu.Lock()
	d.removeLocked(c)
	closed := d.closed
	if c.link != nil && !closed {
		c.link.Ended()
	}
	d.mu.Unlock()
	if d.notifyCancel && !closed {
		d.out.Send(d.channel, &amqp.BasicCancel{ConsumerTag: c.Tag, NoWait: true})
	}
}

// Consume adds a consumer of the queue (basic.consume). It is delivered nothing until its
// first Wake. link is nil for a client of AMQP 0-9-1. Errors: 530, the tag is in use; 540, a shared prefetch limit and a quorum queue;
// and those of broker.Queue.Messages.Consume. The reader's.
func (d *Deliveries) Consume(q *broker.Queue, m *amqp.BasicConsume, link Link) (*Consumer, error) {
	if d.shared.limit > 0 && q.Arguments.Type == policy.Quorum {
		return nil, amqp.NewException(amqp.NotImplemented, 0, 0, "%s does not support global qos", q.Label())
	}
	c := &Consumer{of: d, link: link, Prefetch: int(d.prefetch), Queue: q, arguments: encodeArguments(m.Arguments)}
	if link != nil {
		c.linked = new(broker.Delivery)
	}
	c.Consumer = broker.Consumer{Tag: m.ConsumerTag, NoAck: m.NoAck, Exclusive: m.Exclusive, Args: m.Arguments, Sink: c, Client: d.client()}
	if err := d.add(c); err != nil {
		return nil, err
	}
	if err := q.Messages.Consume(&c.Consumer); err != nil {
		d.mu.Lock()
		d.removeLocked(c)
		d.mu.Unlock()
		return nil, err
	}
	q.NoteConsumed()
	return c, nil
}

// add adds a consumer to the channel under its tag, or under a generated one.
func (d *Deliveries) add(c *Consumer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	tag, err := d.freeTagLocked(c.Tag)
	if err != nil {
		return err
	}
	c.Tag = tag
	d.consumers[c.Tag] = c
	d.usage.Add(c.bytes())
	return nil
}

// removeLocked removes a consumer from the channel, if it is still there.
func (d *Deliveries) removeLocked(c *Consumer) {
	if d.consumers[c.Tag] == c {
		delete(d.consumers, c.Tag)
		d.shared.leave(c)
		c.removed = true
		d.usage.Add(-c.bytes())
	}
}

// Cancel removes the consumer with a tag, if there is one. The reader's.
func (d *Deliveries) Cancel(tag string) {
	d.mu.Lock()
	c := d.consumers[tag]
	if c != nil {
		d.removeLocked(c)
	}
	d.mu.Unlock()
	if c != nil {
		c.Cancel()
	}
}

// FreeTag returns the tag for a consumer that is not among the channel's: tag, or a generated
// one if it is empty. Error: 530, the tag is in use. The reader's.
func (d *Deliveries) FreeTag(tag string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.freeTagLocked(tag)
}

// freeTagLocked is FreeTag.
func (d *Deliveries) freeTagLocked(tag string) (string, error) {
	if _, taken := d.consumers[tag]; taken {
		return "", amqp.NewException(amqp.NotAllowed, 0, 0, "attempt to reuse consumer tag '%s'", tag)
	}
	for tag == "" {
		d.tags++
		free := fmt.Sprintf("amq.ctag-%d.%d", d.channel, d.tags)
		if _, taken := d.consumers[free]; !taken {
			tag = free
		}
	}
	return tag, nil
}

const (
	// consumerBytes is the memory that a consumer takes in addition to its tag and arguments.
	consumerBytes = 1 << 10
	// maxArgumentBytes bounds the arguments of a consumer that are kept for display. Of longer
	// arguments only the meaningful ones are kept.
	maxArgumentBytes = 1 << 10
)

var meantArguments = []string{"x-priority", "x-consumer-timeout", "x-cancel-on-ha-failover"}

// encodeArguments encodes the arguments of a consumer, which then take much less memory.
func encodeArguments(args amqp.Table) []byte {
	if len(args) == 0 {
		return nil
	}
	if b := amqp.AppendTable(nil, args); len(b) <= maxArgumentBytes {
		return append([]byte(nil), b...) // without spare capacity
	}
	meant := amqp.Table{}
	for _, key := range meantArguments {
		if v, given := args[key]; given {
			meant[key] = v
		}
	}
	return amqp.AppendTable(nil, meant)
}

// Arguments decodes the arguments for display.
func (c *Consumer) Arguments() amqp.Table {
	t, _, _ := amqp.ParseTable(c.arguments, amqp.Limits{}) // encoded by encodeArguments
	return t
}

// bytes returns the memory that a consumer takes.
func (c *Consumer) bytes() int64 {
	return consumerBytes + int64(len(c.Tag)+len(c.arguments)+len(c.Client))
}
