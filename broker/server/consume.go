package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
)

func (ch *channel) qos(m *amqp.BasicQos) error {
	if m.PrefetchSize != 0 {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "prefetch_size!=0 (%d)", m.PrefetchSize)
	}
	ch.deliveries.SetPrefetch(m.PrefetchCount, m.Global)
	ch.send(&amqp.BasicQosOk{})
	ch.deliveries.ServeLine()
	return nil
}

func (ch *channel) consume(m *amqp.BasicConsume) error {
	if m.Queue == broker.ReplyQueue {
		return ch.consumeReplies(m)
	}
	q, err := ch.conn.user.QueueToRead(m.Queue, ch.queue)
	if err != nil {
		return err
	}
	c, err := ch.deliveries.Consume(q, m, nil)
	if err != nil {
		return err
	}
	err = ch.reply(m.NoWait, &amqp.BasicConsumeOk{ConsumerTag: c.Tag})
	c.Wake()
	return err
}

func (ch *channel) cancel(m *amqp.BasicCancel) error {
	if !ch.cancelReplies(m.ConsumerTag) {
		ch.deliveries.Cancel(m.ConsumerTag)
	}
	return ch.reply(m.NoWait, &amqp.BasicCancelOk{ConsumerTag: m.ConsumerTag})
}

func (ch *channel) get(m *amqp.BasicGet) error {
	ch.conn.out.WaitRoom() // pipelined gets must not outrun the client's reading
	q, err := ch.conn.user.QueueToRead(m.Queue, ch.queue)
	if err != nil {
		return err
	}
	got, err := ch.deliveries.Get(q, m.NoAck)
	if err == nil && !got {
		ch.send(&amqp.BasicGetEmpty{})
	}
	return err
}

// settle handles an ack, a nack or a reject. It takes effect at the connection's next flush;
// in a transaction, at the commit.
func (ch *channel) settle(how broker.Settlement, tag uint64, multiple bool, id amqp.MethodID) error {
	if ch.tx.Load() != nil {
		return ch.deliveries.Defer(how, tag, multiple, id)
	}
	return ch.deliveries.Settle(&ch.conn.acks, how, tag, multiple, id)
}

// recover requeues all unacked deliveries (basic.recover).
func (ch *channel) recover(requeue, answer bool) error {
	if !requeue {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "requeue=false")
	}
	ch.deliveries.ReturnAll(&ch.conn.acks)
	return ch.reply(!answer, &amqp.BasicRecoverOk{})
}
