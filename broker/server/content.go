package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
)

// contentStage is the kind of frame that a channel expects next.
type contentStage uint8

const (
	contentNone   contentStage = iota // a method
	contentHeader                     // the header of a publish
	contentBody                       // more of its body
)

// content is a publish that is being assembled. Its memory is accounted for (memory.go).
type content struct {
	stage      contentStage
	mandatory  bool
	exchange   []byte
	routingKey []byte
	properties []byte
	size       uint64
	body       []byte
}

// abandon discards an unfinished publish, or a complete one that waits for room.
func (p *content) abandon(c *connection) {
	p.release(c)
	*p = content{}
}

// publishMethod begins a publish. It copies the names, because the header may arrive with a
// later read.
func (ch *channel) publishMethod(payload []byte) error {
	m, err := amqp.ParsePublish(payload)
	if err != nil {
		return err
	}
	if m.Immediate {
		return amqp.NewException(amqp.NotImplemented, amqp.ClassBasic, amqp.BasicPublishID.Method(), "immediate=true")
	}
	p := &ch.content
	p.stage, p.mandatory = contentHeader, m.Mandatory
	p.exchange = append(p.exchange[:0], m.Exchange...)
	p.routingKey = append(p.routingKey[:0], m.RoutingKey...)
	return nil
}

// contentFrame handles a header or body frame, and refuses one that is out of order.
func (ch *channel) contentFrame(f amqp.Frame) error {
	switch ch.content.stage {
	case contentHeader:
		if f.Type != amqp.FrameHeader {
			return unexpected("expected content header for class 60, got non content header frame instead")
		}
		return ch.header(f.Payload)
	case contentBody:
		if f.Type != amqp.FrameBody {
			return unexpected("expected content body, got non content body frame instead")
		}
		return ch.body(f.Payload)
	}
	return unexpected("expected method frame, got non method frame instead")
}

func unexpected(text string) error {
	return amqp.NewException(amqp.UnexpectedFrame, amqp.ClassBasic, amqp.BasicPublishID.Method(), "%s", text)
}

func (ch *channel) header(payload []byte) error {
	h, err := amqp.ParseContentHeader(payload)
	if err != nil {
		return err
	}
	if most := ch.conn.srv.opts.Broker.MaxMessageBytes(); h.BodySize > uint64(most) {
		return amqp.NewException(amqp.PreconditionFailed, amqp.ClassBasic, amqp.BasicPublishID.Method(),
			"message size %d is larger than configured max size %d", h.BodySize, most)
	}
	if h.BodySize == 0 {
		return ch.publish(h.Properties, nil)
	}
	p := &ch.content
	p.stage, p.size = contentBody, h.BodySize
	p.keepProperties(ch.conn, h.Properties)
	ch.conn.published = true // unfinished publishes take memory, too
	return nil
}

// body handles one body frame. A body of a single frame is published straight from the read
// buffer. A longer body is assembled in memory that grows as it arrives.
func (ch *channel) body(b []byte) error {
	p := &ch.content
	left := p.size - uint64(len(p.body))
	switch {
	case len(b) == 0:
		return nil // RabbitMQ accepts it, too
	case uint64(len(b)) > left:
		return unexpected("content body larger than its header says")
	case uint64(len(b)) == p.size:
		err := ch.publish(p.properties, b)
		p.release(ch.conn)
		return err
	}
	ch.conn.published = true
	p.appendBody(ch.conn, b)
	if uint64(len(b)) < left {
		return nil
	}
	err := ch.publish(p.properties, p.body)
	p.release(ch.conn)
	return err
}

// publish adds a complete message to the batch, or returns it to the client.
func (ch *channel) publish(properties, body []byte) error {
	p := &ch.content
	p.stage = contentNone
	ch.conn.published = true
	if err := ch.awaitUnblocked(); err != nil {
		return err
	}
	m := broker.Publication{Exchange: p.exchange, RoutingKey: p.routingKey, Properties: properties, Body: body}
	if ch.tx != nil {
		return ch.publishLater(&m)
	}
	routed, err := ch.addWhenRoom(&m)
	if err != nil {
		return err
	}
	if ch.confirm {
		ch.published++
	}
	if !ch.dirty {
		ch.dirty = true
		ch.conn.dirty = append(ch.conn.dirty, ch)
	}
	ch.pendingCounts.published++
	switch {
	case routed:
	case p.mandatory:
		ch.pendingCounts.returned++
		ch.returnMessage(p.exchange, p.routingKey, properties, body)
	default:
		ch.pendingCounts.dropped++
	}
	return nil
}

// returnMessage sends basic.return; a confirm comes after it.
func (ch *channel) returnMessage(exchange, routingKey, properties, body []byte) {
	o := &ch.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserveLocked(returnSize + len(exchange) + len(routingKey) + len(properties) + len(body))
	o.buf = amqp.AppendReturn(o.buf, ch.id, amqp.NoRoute, "NO_ROUTE", exchange, routingKey)
	o.buf = amqp.AppendContent(o.buf, ch.id, properties, body, ch.conn.frameMax)
	o.flushLocked()
}

// flushPublishes makes the batch enter its queues, and has it confirmed once it is as
// durable as the store promises.
func (ch *channel) flushPublishes() {
	ch.dirty = false
	ch.refused = ch.publisher.Flush(ch.refused)
	ch.foldCounts()
	if !ch.confirm || ch.confirmed == ch.published {
		return
	}
	first, last := ch.confirmed+1, ch.published
	ch.expectConfirms(last - ch.confirmed)
	ch.confirmed = last
	var refused []uint64
	for _, n := range ch.refused {
		refused = append(refused, first+uint64(n))
	}
	ch.conn.srv.opts.Broker.Commit(func(err error) {
		if err == nil {
			ch.confirmRange(first, last, refused)
		}
	})
}

// confirmRange confirms the publishes first to last, except for those that a full queue
// refused (ascending), in as few frames as possible (RabbitMQ: Publisher Confirms). Any
// goroutine may call it, for ascending ranges. If the channel has been closed meanwhile
// nothing is sent: its number may belong to another channel by now.
func (ch *channel) confirmRange(first, last uint64, refused []uint64) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	o := &ch.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead || ch.closed {
		return
	}
	ch.answered += last - first + 1
	ch.counts.Confirmed += last - first + 1 - uint64(len(refused))
	ch.conn.srv.totals.confirmed.Add(last - first + 1 - uint64(len(refused)))
	o.reserveLocked(settleSize * (1 + 2*len(refused)))
	next := first
	for _, tag := range refused {
		if tag > next {
			o.buf = amqp.AppendAck(o.buf, ch.id, tag-1, tag-next > 1)
		}
		o.buf = amqp.AppendNack(o.buf, ch.id, tag, false, false)
		next = tag + 1
	}
	if next <= last {
		o.buf = amqp.AppendAck(o.buf, ch.id, last, last > next)
	}
	o.flushLocked()
}

func (ch *channel) confirmSelect(m *amqp.ConfirmSelect) error {
	if ch.tx != nil {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot switch from tx to confirm mode")
	}
	ch.mu.Lock()
	ch.confirm = true
	ch.mu.Unlock()
	return ch.reply(m.NoWait, &amqp.ConfirmSelectOk{})
}
