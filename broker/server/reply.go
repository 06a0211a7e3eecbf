package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
)

// replyBacklog is how many octets may wait in a connection's outbox for a direct reply to
// be added, if the budget of all clients allows that. Beyond it replies are lost and
// counted, as they are when the channel is gone: they are not stored, and their publishers
// do not wait.
const replyBacklog = 16 << 20

// replyConsumer is the consumer of a channel's direct replies (RabbitMQ: Direct Reply-to).
type replyConsumer struct {
	tag, name string
}

// consumeReplies starts the consumer of replies; a channel may have one.
func (ch *channel) consumeReplies(m *amqp.BasicConsume) error {
	ch.mu.Lock()
	tag := m.ConsumerTag
	_, taken := ch.consumers[tag]
	if tag == "" {
		tag = ch.freeTagLocked()
	}
	ch.mu.Unlock()
	switch {
	case taken:
		return amqp.NewException(amqp.NotAllowed, 0, 0, "attempt to reuse consumer tag '%s'", tag)
	case !m.NoAck:
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "reply consumer cannot acknowledge")
	case ch.replies.name != "":
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "reply consumer already set")
	}
	name := ch.conn.vhost.OpenReply(func(m *broker.Publication) { ch.deliverReply(tag, m) })
	ch.replies = replyConsumer{tag, name}
	ch.publisher.ReplyTo = name
	return ch.reply(m.NoWait, &amqp.BasicConsumeOk{ConsumerTag: tag})
}

// cancelReplies ends the consumer of replies. It returns false if the tag is not its tag.
func (ch *channel) cancelReplies(tag string) bool {
	if ch.replies.name == "" || ch.replies.tag != tag {
		return false
	}
	ch.closeReplies()
	return true
}

func (ch *channel) closeReplies() {
	if ch.replies.name != "" {
		ch.conn.vhost.CloseReply(ch.replies.name)
		ch.replies, ch.publisher.ReplyTo = replyConsumer{}, ""
	}
}

// deliverReply sends a reply to the client. Any goroutine may call it.
func (ch *channel) deliverReply(tag string, m *broker.Publication) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	o := &ch.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if ch.closed || o.dead {
		return
	}
	if o.overLocked(replyBacklog) {
		ch.conn.srv.totals.repliesLost.Add(1)
		return
	}
	o.reserveLocked(returnSize + len(tag) + len(m.Exchange) + len(m.RoutingKey) + len(m.Properties) + len(m.Body))
	o.buf = amqp.AppendDeliver(o.buf, ch.id, tag, ch.unacked.skip(), false, m.Exchange, m.RoutingKey)
	o.buf = amqp.AppendContent(o.buf, ch.id, m.Properties, m.Body, ch.conn.frameMax)
	o.flushLocked()
}

// declareReply answers a declaration of a name that is reserved for replies, passive or
// not: such a queue always has one consumer and no messages.
func (ch *channel) declareReply(m *amqp.QueueDeclare) error {
	if err := ch.conn.vhost.CheckReply(m.Queue); err != nil {
		return err
	}
	ch.queue = m.Queue
	return ch.reply(m.NoWait, &amqp.QueueDeclareOk{Queue: m.Queue, ConsumerCount: 1})
}
