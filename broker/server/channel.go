package server

import (
	"errors"
	"sync"

	"curfew/broker"
	"curfew/broker/amqp"
)

// channel is one channel of a connection. The fields above mu belong to the connection's
// reader; the fields below it are shared with whoever delivers. Lock order: a queue's lock,
// then mu, then the outbox's.
type channel struct {
	conn *connection
	id   uint16

	publisher     *broker.Publisher
	content       content
	queue         string // declared last; an empty queue name refers to it
	prefetch      int    // of consumers started from now on; 0: no limit
	confirm       bool
	published     uint64 // publishes since confirm.select; the tag of the last one
	confirmed     uint64 // confirms were requested from the broker up to this tag
	refused       []int
	tags          int               // generated consumer tags so far
	settled       []unackedDelivery // scratch space of settle
	pendingCounts publishCounts
	dirty         bool          // is in conn.dirty
	closing       bool          // channel.close is sent; everything but close-ok is ignored
	replies       replyConsumer // zero: none
	tx            *transaction  // nil: the channel is not transactional; changed with mu held

	mu        sync.Mutex
	consumers map[string]*consumer
	unacked   unackedRing
	limit     int         // unacked deliveries over all consumers; 0: no limit (basic.qos global)
	inFlight  int         // unacked deliveries of consumers; messages from basic.get do not count
	starved   []*consumer // refused because of limit, in the order of their turns
	turn      *consumer   // the consumer that may take a message before them; nil: none
	closed    bool

	committing bool // tx.commit has not been answered yet
	counts     ChannelCounts
	toConfirm  uint64 // publishes to be confirmed
	answered   uint64 // publishes confirmed or refused
}

func newChannel(c *connection, id uint16) *channel {
	return &channel{
		conn: c, id: id, publisher: c.rights.NewPublisher(c.vhost), consumers: map[string]*consumer{},
	}
}

// frame handles one frame of this channel.
func (ch *channel) frame(f amqp.Frame) error {
	if ch.closing {
		return ch.whileClosing(f)
	}
	if f.Type == amqp.FrameMethod && ch.content.stage == contentNone {
		return ch.method(f.Payload)
	}
	if err := ch.contentFrame(f); !errors.Is(err, errOverdue) {
		return err
	}
	return nil
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
	if ch.tx != nil && id != amqp.ChannelCloseID {
		if err := ch.checkCommitted(); err != nil {
			return amqp.Answering(err, id)
		}
	}
	switch id {
	case amqp.BasicPublishID:
		return ch.publishMethod(payload)
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
		return ch.settle(backOrAway(requeue), tag, multiple, id)
	case amqp.BasicRejectID:
		tag, requeue, err := amqp.ParseReject(payload)
		if err != nil {
			return err
		}
		return ch.settle(backOrAway(requeue), tag, false, id)
	}
	ch.conn.flush()
	m, err := amqp.ParseMethod(payload, ch.conn.tables)
	if err != nil {
		return err
	}
	return amqp.Answering(ch.handle(m), id)
}

func backOrAway(requeue bool) broker.Settlement {
	if requeue {
		return broker.Requeue
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
	case *amqp.ExchangeDeclare:
		return ch.exchangeDeclare(m)
	case *amqp.ExchangeDelete:
		return ch.exchangeDelete(m)
	case *amqp.ExchangeBind:
		return ch.exchangeBind(m)
	case *amqp.ExchangeUnbind:
		return ch.exchangeUnbind(m)
	case *amqp.QueueDeclare:
		return ch.queueDeclare(m)
	case *amqp.QueueBind:
		return ch.queueBind(m)
	case *amqp.QueueUnbind:
		return ch.queueUnbind(m)
	case *amqp.QueuePurge:
		return ch.queuePurge(m)
	case *amqp.QueueDelete:
		return ch.queueDelete(m)
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
	case *amqp.TxCommit:
		return ch.commit()
	case *amqp.TxRollback:
		return ch.txRollback()
	}
	return amqp.NewException(amqp.NotImplemented, 0, 0, "method %s", m.ID())
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
func (ch *channel) send(m amqp.Method) { ch.conn.out.send(ch.id, m) }

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
	ch.send(&amqp.ChannelClose{Closing: amqp.Closing{ReplyCode: e.Code, ReplyText: e.Text, ClassID: e.Class, MethodID: e.Method}})
}

// close returns the unacked messages and ends the consumers, in this order, so that the
// next consumers of a queue get its messages in order. It may be called again.
func (ch *channel) close() {
	ch.conn.flush()
	ch.publisher.Pause()
	ch.rollback()
	ch.closeReplies()
	ch.content.abandon(ch.conn)
	ch.mu.Lock()
	ch.closed = true
	consumers := ch.consumers
	ch.consumers, ch.starved = nil, nil
	ch.mu.Unlock()
	ch.returnUnacked()
	for _, c := range consumers {
		ch.conn.heldBytes.Add(-c.bytes())
		c.Cancel()
	}
}
