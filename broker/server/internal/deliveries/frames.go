package deliveries

import (
	"curfew/broker"
	"curfew/broker/amqp"
)

// Send appends one method.
func (o *Outbox) Send(channel uint16, m amqp.Method) {
	o.Lock()
	defer o.Unlock()
	o.reserveLocked(methodSize)
	o.buf = amqp.AppendMethod(o.buf, channel, m)
	o.FlushLocked()
}

// SendRaw appends frames as they are.
func (o *Outbox) SendRaw(frames []byte) {
	o.Lock()
	defer o.Unlock()
	o.RawLocked(frames)
	o.FlushLocked()
}

// RawLocked appends frames as they are. FlushLocked must follow.
func (o *Outbox) RawLocked(frames []byte) {
	o.reserveLocked(len(frames))
	o.buf = append(o.buf, frames...)
}

// DeliverLocked appends a message for a consumer. FlushLocked must follow.
func (o *Outbox) DeliverLocked(channel uint16, consumer string, tag uint64, d *broker.Delivery) {
	m := &d.Message
	o.reserveLocked(contentSize(d))
	o.buf = amqp.AppendDeliver(o.buf, channel, consumer, tag, d.Redelivered, m.Exchange, m.RoutingKey)
	o.contentLocked(channel, m.Properties, m.Body)
}

// SendGot appends the message that a basic.get has taken.
func (o *Outbox) SendGot(channel uint16, tag uint64, d *broker.Delivery) {
	o.Lock()
	defer o.Unlock()
	m := &d.Message
	o.reserveLocked(contentSize(d))
	o.buf = amqp.AppendGetOk(o.buf, channel, tag, d.Redelivered, m.Exchange, m.RoutingKey, uint32(d.Ready))
	o.contentLocked(channel, m.Properties, m.Body)
	o.FlushLocked()
}

// contentLocked appends the content of a message. A large body goes into several buffers.
func (o *Outbox) contentLocked(channel uint16, properties, body []byte) {
	o.buf = amqp.AppendHeader(o.buf, channel, properties, len(body))
	room := amqp.BodyRoom(o.frameMax)
	most := room * max(1, Size256K/room)
	for len(body) > most {
		o.reserveLocked(most + amqp.FrameOverhead*(most/room))
		o.buf = amqp.AppendBody(o.buf, channel, body[:most], o.frameMax)
		body = body[most:]
	}
	o.reserveLocked(len(body) + amqp.FrameOverhead)
	o.buf = amqp.AppendBody(o.buf, channel, body, o.frameMax)
}

// contentSize is the size that most deliveries of a message fit in, with three names of
// usual length. What a body has above 256 KiB contentLocked makes room for.
func contentSize(d *broker.Delivery) int {
	m := &d.Message
	return 256 + len(m.Exchange) + len(m.RoutingKey) + len(m.Properties) + min(len(m.Body), Size256K)
}

// ReplyLocked appends a direct reply.
func (o *Outbox) ReplyLocked(channel uint16, consumer string, tag uint64, m *broker.Publication) {
	o.reserveLocked(len(consumer) + publicationSize(m))
	o.buf = amqp.AppendDeliver(o.buf, channel, consumer, tag, false, m.Exchange, m.RoutingKey)
	o.contentLocked(channel, m.Properties, m.Body)
	o.FlushLocked()
}

// SendReturn appends a mandatory publish that no queue takes.
func (o *Outbox) SendReturn(channel uint16, m *broker.Publication) {
	o.Lock()
	defer o.Unlock()
	o.reserveLocked(publicationSize(m))
	o.buf = amqp.AppendReturn(o.buf, channel, amqp.NoRoute, "NO_ROUTE", m.Exchange, m.RoutingKey)
	o.contentLocked(channel, m.Properties, m.Body)
	o.FlushLocked()
}

func publicationSize(m *broker.Publication) int {
	return returnSize + len(m.Exchange) + len(m.RoutingKey) + len(m.Properties) + min(len(m.Body), Size256K)
}

// ConfirmLocked confirms the publishes first to last, except for the refused ones (ascending),
// in as few frames as possible (RabbitMQ: Publisher Confirms).
func (o *Outbox) ConfirmLocked(channel uint16, first, last uint64, refused []uint64) {
	o.reserveLocked(settleSize * (1 + 2*len(refused)))
	next := first
	for _, tag := range refused {
		if tag > next {
			o.buf = amqp.AppendAck(o.buf, channel, tag-1, tag-next > 1)
		}
		o.buf = amqp.AppendNack(o.buf, channel, tag, false, false)
		next = tag + 1
	}
	if next <= last {
		o.buf = amqp.AppendAck(o.buf, channel, last, last > next)
	}
	o.FlushLocked()
}
