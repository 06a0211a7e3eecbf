package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
)

// replyConsumer is the consumer of a channel's direct replies (RabbitMQ: Direct Reply-to).
type replyConsumer struct {
	tag, name string
}

// consumeReplies starts the consumer of replies; a channel may have one.
func (ch *channel) consumeReplies(m *amqp.BasicConsume) error {
	tag, err := ch.deliveries.FreeTag(m.ConsumerTag)
	switch {
	case err != nil:
		return err
	case !m.NoAck:
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "reply consumer cannot acknowledge")
	case ch.replies != nil:
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "reply consumer already set")
	}
	name := ch.conn.user.VHost.OpenReply(func(m *broker.Publication) {
		if ch.deliveries.Reply(tag, m) {
			ch.conn.srv.Totals.RepliesLost.Add(1)
		}
	})
	ch.replies, ch.publisher.ReplyTo = &replyConsumer{tag, name}, name
	return ch.reply(m.NoWait, &amqp.BasicConsumeOk{ConsumerTag: tag})
}

// cancelReplies ends the consumer of replies. It returns false if the tag is not its tag.
func (ch *channel) cancelReplies(tag string) bool {
	if ch.replies == nil || ch.replies.tag != tag {
		return false
	}
	ch.closeReplies()
	return true
}

func (ch *channel) closeReplies() {
	if ch.replies != nil {
		ch.conn.user.VHost.CloseReply(ch.replies.name)
		ch.replies, ch.publisher.ReplyTo = nil, ""
	}
}
