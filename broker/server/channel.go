package server

import (
	"sync/atomic"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
	"curfew/broker/server/internal/deliveries"
)

// channel is one channel of a connection: it dispatches each frame by its method to the part
// that handles it. Its fields belong to the connection's reader, except that any goroutine may
// use deliveries and the atomic fields.
type channel struct {
	conn *connection
	id   uint16

	dirty   bool   // is in conn.dirty
	closing bool   // channel.close is sent; everything but close-ok is ignored
	queue   string // declared last; an empty queue name refers to it

	publisher *broker.Publisher
	content   assembly
	refused   []int // scratch space: the publishes of a batch that a full queue refused
	unflushed publishCounts
	published publishTotals
	confirms  atomic.Pointer[confirms]    // nil: the channel does not confirm
	tx        atomic.Pointer[transaction] // nil: the channel is not transactional

	deliveries deliveries.Deliveries
	replies    *replyConsumer // nil: none
	ten        *session10     // nil: it is a channel of AMQP 0-9-1
}

// openChannel adds a channel to a connection.
func openChannel(c *connection, id uint16) (*channel, error) {
	if err := c.session.OpenChannel(); err != nil {
		return nil, err
	}
	ch := &channel{conn: c, id: id, publisher: c.user.Rights.NewPublisher(c.user.VHost)}
	ch.publisher.TakesTurns = true
	ch.deliveries.Init(id, &c.out, &c.usage, c.cancelNotify, c.client)
	c.channels.add(ch)
	c.usage.Add(channelBytes)
	c.srv.Totals.ChannelsOpened.Add(1)
	return ch, nil
}

// frame handles one frame of this channel.
func (ch *channel) frame(f amqp.Frame) error {
	if ch.closing {
		return ch.whileClosing(f)
	}
	if f.Type == amqp.FrameMethod && ch.content.stage == nextMethod {
		return ch.method(f.Payload)
	}
	return ch.addContent(f)
}

func (ch *channel) whileClosing(f amqp.Frame) error {
	if f.Type != amqp.FrameMethod {
		return nil
	}
	switch id, _ := amqp.PeekMethod(f.Payload); id {
	case amqp.ChannelCloseOkID:
		ch.conn.removeChannel(ch)
	case amqp.ChannelCloseID: // both sides closed at the same time; the client's close-ok is still to come
		ch.send(&amqp.ChannelCloseOk{})
	}
	return nil
}

// method handles a method frame. Methods that come with every message are parsed in place.
// Any other method first makes everything gathered take effect, so that it sees the queues
// as the client left them.
func (ch *channel) method(payload []byte) error {
	id, err := amqp.PeekMethod(payload)
	if err != nil {
		return err
	}
	if tx := ch.tx.Load(); tx != nil && id != amqp.ChannelCloseID {
		if err := tx.checkCommitted(); err != nil {
			return amqp.Answering(err, id)
		}
	}
	switch id {
	case amqp.BasicPublishID:
		return ch.content.begin(payload)
	case amqp.BasicAckID:
		tag, multiple, err := amqp.ParseAck(payload)
		if err != nil {
			return err
		}
		return ch.settle(broker.Ack, tag, multiple, id)
	case amqp.BasicNackID:
		tag, multiple, requeue, err := amqp.ParseNack(payload)
		if err != nil {
			return err
		}
		return ch.settle(backOrAway(requeue, broker.Return), tag, multiple, id)
	case amqp.BasicRejectID:
		tag, requeue, err := amqp.ParseReject(payload)
		if err != nil {
			return err
		}
		return ch.settle(backOrAway(requeue, broker.Requeue), tag, false, id)
	}
	ch.conn.flush()
	m, err := amqp.ParseMethod(payload, ch.conn.tables)
	if err != nil {
		return err
	}
	return amqp.Answering(ch.handle(m), id)
}

// backOrAway is what becomes of a message that its consumer does not want; back: what requeueing it means.
func backOrAway(requeue bool, back broker.Settlement) broker.Settlement {
	if requeue {
		return back
	}
	return broker.Reject
}

// handle executes a method that does not come with every message.
func (ch *channel) handle(m amqp.Method) error {
	switch m := m.(type) {
	case *amqp.ChannelOpen:
		return amqp.NewException(amqp.ChannelError, 0, 0, "second 'channel.open' seen")
	case *amqp.ChannelClose:
		ch.close()
		ch.send(&amqp.ChannelCloseOk{})
		ch.conn.removeChannel(ch)
		return nil
	case *amqp.ChannelFlow:
		return ch.flow(m)
	case *amqp.BasicQos:
		return ch.qos(m)
	case *amqp.BasicConsume:
		defer ch.conn.updatePaced()
		return ch.consume(m)
	case *amqp.BasicCancel:
		defer ch.conn.updatePaced()
		return ch.cancel(m)
	case *amqp.BasicGet:
		return ch.get(m)
	case *amqp.BasicRecover:
		return ch.recover(m.Requeue, true)
	case *amqp.BasicRecoverAsync:
		return ch.recover(m.Requeue, false)
	case *amqp.ConfirmSelect:
		return ch.confirmSelect(m)
	case *amqp.TxSelect:
		return ch.txSelect()
	case *amqp.TxCommit, *amqp.TxRollback:
		tx := ch.tx.Load()
		if tx == nil {
			return amqp.NewException(amqp.PreconditionFailed, 0, 0, "channel is not transactional")
		}
		if _, is := m.(*amqp.TxCommit); is {
			return ch.commit(tx)
		}
		ch.rollback()
		ch.send(&amqp.TxRollbackOk{})
		return nil
	}
	answer, known, err := ch.conn.user.Execute(m, &ch.queue)
	if !known {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "method %s", amqp.IDOf(m))
	}
	if answer != nil {
		ch.send(answer)
	}
	return err
}

// flow: a client cannot stop deliveries by channel.flow, as in RabbitMQ; basic.qos and
// basic.cancel do that.
func (ch *channel) flow(m *amqp.ChannelFlow) error {
	if !m.Active {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "active=false")
	}
	ch.send(&amqp.ChannelFlowOk{Active: true})
	return nil
}

// send appends a method to the connection's outbox.
func (ch *channel) send(m amqp.Method) { ch.conn.out.Send(ch.id, m) }

// reply sends the answer unless the client asked for none.
func (ch *channel) reply(noWait bool, m amqp.Method) error {
	if !noWait {
		ch.send(m)
	}
	return nil
}

// closeWith closes the channel because of e, and waits for close-ok.
func (ch *channel) closeWith(e *amqp.Exception) {
	ch.close()
	ch.closing = true
	if ch.ten != nil {
		ch.ten.p.send(ch.ten.id, &amqp10.End{Ending: amqp10.Ending{Error: convert.ErrorOf(e)}})
		return
	}
	ch.send(&amqp.ChannelClose{Closing: amqp.Closing{ReplyCode: e.Code, ReplyText: e.Text, ClassID: e.Class, MethodID: e.Method}})
}

// close rolls back what is not committed, and gives up what the channel holds. It may be
// called again.
func (ch *channel) close() {
	ch.conn.flush()
	ch.publisher.Pause()
	ch.rollback()
	ch.closeReplies()
	ch.content.abandon(&ch.conn.usage)
	if ch.ten != nil {
		ch.ten.close()
	}
	if c := ch.confirms.Load(); c != nil {
		c.close()
	}
	if tx := ch.tx.Load(); tx != nil {
		tx.close()
	}
	ch.deliveries.Close(&ch.conn.acks)
}
