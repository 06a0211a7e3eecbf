package server

import (
	"fmt"

	"curfew/broker"
	"curfew/broker/amqp"
)

// consumer is one basic.consume on a channel. It implements broker.Sink.
type consumer struct {
	broker.Consumer
	ch       *channel
	prefetch int // its own limit of unacked deliveries; 0: no limit

	arguments []byte // for display, encoded

	on *broker.Queue

	// Guarded by ch.mu.
	inFlight int
	starved  bool // is in ch.starved
}

// Pull delivers up to most messages, as far as the prefetch limit and the outbox allow.
func (c *consumer) Pull(_ *broker.Consumer, src *broker.Source, most int) (taken int, more bool) {
	if c.ch.conn.srv.draining.Load() {
		return 0, false
	}
	c.ch.mu.Lock()
	defer c.ch.mu.Unlock()
	o := &c.ch.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	for taken < most && c.roomLocked(o) {
		if !c.deliverLocked(o, src) {
			most = taken
			break
		}
		taken++
	}
	if taken > 0 {
		o.flushLocked()
	}
	return taken, taken == most
}

// roomLocked reports whether one more message may be delivered now. A full outbox remembers
// the consumer and wakes it when the buffer has been swapped out.
func (c *consumer) roomLocked(o *outbox) bool {
	if !c.creditLocked() {
		return false
	}
	if o.fullLocked() {
		o.starved = append(o.starved, &c.Consumer)
		return false
	}
	return true
}

func (c *consumer) deliverLocked(o *outbox, src *broker.Source) bool {
	var d broker.Delivery
	if !src.Next(&d) {
		return false
	}
	c.ch.counts.countDelivered(false, c.NoAck, d.Redelivered)
	o.reserveLocked(contentSize(&d))
	o.buf = amqp.AppendDeliver(o.buf, c.ch.id, c.Tag, c.tagLocked(&d), d.Redelivered, d.Message.Exchange, d.Message.RoutingKey)
	o.buf = amqp.AppendContent(o.buf, c.ch.id, d.Message.Properties, d.Message.Body, c.ch.conn.frameMax)
	return true
}

// contentSize is the size that most deliveries of a message fit in, with three names of
// usual length.
func contentSize(d *broker.Delivery) int {
	m := &d.Message
	return 256 + len(m.Exchange) + len(m.RoutingKey) + len(m.Properties) + len(m.Body)
}

// creditLocked reports whether the prefetch limits allow one more delivery. It needs ch.mu.
func (c *consumer) creditLocked() bool {
	switch {
	case c.ch.closed, c.prefetch > 0 && c.inFlight >= c.prefetch:
		return false
	case c.ch.limit > 0:
		return c.shareLocked()
	}
	return true
}

func (c *consumer) tagLocked(d *broker.Delivery) uint64 {
	if c.NoAck {
		return c.ch.unacked.skip()
	}
	c.inFlight++
	c.ch.inFlight++
	return c.ch.unacked.add(unackedDelivery{q: c.on, seq: d.Seq, c: c, at: d.At, locked: d.Locked})
}

// Cancelled notifies a client that supports it that the queue is gone (RabbitMQ: Consumer
// Cancel Notification).
func (c *consumer) Cancelled(*broker.Consumer) {
	ch := c.ch
	ch.mu.Lock()
	ch.forgetLocked(c)
	closed := ch.closed
	ch.mu.Unlock()
	if ch.conn.cancelNotify && !closed {
		ch.send(&amqp.BasicCancel{ConsumerTag: c.Tag, NoWait: true})
	}
}

// qos sets the limit of the channel (global), or of the consumers started later (RabbitMQ:
// Consumer Prefetch). Setting the latter removes the channel's limit, as in RabbitMQ.
func (ch *channel) qos(m *amqp.BasicQos) error {
	if m.PrefetchSize != 0 {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "prefetch_size!=0 (%d)", m.PrefetchSize)
	}
	ch.mu.Lock()
	ch.limit = 0
	if m.Global {
		ch.limit = int(m.PrefetchCount)
	} else {
		ch.prefetch = int(m.PrefetchCount)
	}
	ch.mu.Unlock()
	ch.send(&amqp.BasicQosOk{})
	ch.serveStarved()
	return nil
}

func (ch *channel) consume(m *amqp.BasicConsume) error {
	if m.Queue == broker.ReplyQueue {
		return ch.consumeReplies(m)
	}
	q, err := ch.queueToRead(m.Queue)
	if err != nil {
		return err
	}
	if ch.limit > 0 && q.Type() == broker.Quorum {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "%s does not support global qos", q.Label())
	}
	c := &consumer{ch: ch, prefetch: ch.prefetch, on: q, arguments: encodeArguments(m.Arguments)}
	c.Consumer = broker.Consumer{Tag: m.ConsumerTag, NoAck: m.NoAck, Exclusive: m.Exclusive, Args: m.Arguments, Sink: c}
	ch.mu.Lock()
	if c.Tag == "" {
		c.Tag = ch.freeTagLocked()
	}
	_, taken := ch.consumers[c.Tag]
	if !taken {
		ch.consumers[c.Tag] = c
		ch.conn.heldBytes.Add(c.bytes())
	}
	ch.mu.Unlock()
	if taken {
		return amqp.NewException(amqp.NotAllowed, 0, 0, "attempt to reuse consumer tag '%s'", c.Tag)
	}
	if err := q.Consume(&c.Consumer); err != nil {
		ch.mu.Lock()
		ch.forgetLocked(c)
		ch.mu.Unlock()
		return err
	}
	ch.reply(m.NoWait, &amqp.BasicConsumeOk{ConsumerTag: c.Tag})
	c.Wake()
	return nil
}

// forgetLocked removes a consumer from the channel, if it is still there.
func (ch *channel) forgetLocked(c *consumer) {
	if ch.consumers[c.Tag] == c {
		delete(ch.consumers, c.Tag)
		ch.unstarveLocked(c)
		ch.conn.heldBytes.Add(-c.bytes())
	}
}

// freeTagLocked generates a consumer tag that the channel does not use.
func (ch *channel) freeTagLocked() string {
	for {
		ch.tags++
		tag := fmt.Sprintf("amq.ctag-%d.%d", ch.id, ch.tags)
		if _, taken := ch.consumers[tag]; !taken {
			return tag
		}
	}
}

func (ch *channel) cancel(m *amqp.BasicCancel) error {
	if ch.cancelReplies(m.ConsumerTag) {
		return ch.reply(m.NoWait, &amqp.BasicCancelOk{ConsumerTag: m.ConsumerTag})
	}
	ch.mu.Lock()
	c := ch.consumers[m.ConsumerTag]
	if c != nil {
		ch.forgetLocked(c)
	}
	ch.mu.Unlock()
	if c != nil {
		c.Cancel()
	}
	return ch.reply(m.NoWait, &amqp.BasicCancelOk{ConsumerTag: m.ConsumerTag})
}

func (ch *channel) get(m *amqp.BasicGet) error {
	ch.conn.out.waitRoom() // pipelined gets must not outrun the client's reading
	q, err := ch.queueToRead(m.Queue)
	if err != nil {
		return err
	}
	got, err := q.Get(m.NoAck, func(d *broker.Delivery) {
		ch.mu.Lock()
		defer ch.mu.Unlock()
		ch.counts.countDelivered(true, m.NoAck, d.Redelivered)
		d.Holder = ch
		var tag uint64
		if m.NoAck {
			tag = ch.unacked.skip()
		} else {
			tag = ch.unacked.add(unackedDelivery{q: q, seq: d.Seq, at: d.At, locked: d.Locked})
		}
		o := &ch.conn.out
		o.mu.Lock()
		defer o.mu.Unlock()
		o.reserveLocked(contentSize(d))
		o.buf = amqp.AppendGetOk(o.buf, ch.id, tag, d.Redelivered, d.Message.Exchange, d.Message.RoutingKey, uint32(d.Ready))
		o.buf = amqp.AppendContent(o.buf, ch.id, d.Message.Properties, d.Message.Body, ch.conn.frameMax)
		o.flushLocked()
	})
	if err == nil && !got {
		ch.mu.Lock()
		ch.counts.GetEmpty++
		ch.mu.Unlock()
		ch.send(&amqp.BasicGetEmpty{})
	}
	return err
}
