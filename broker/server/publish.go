package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
)

// addContent handles a header or body frame.
func (ch *channel) addContent(f amqp.Frame) error {
	c := ch.conn
	m, err := ch.content.add(f, c.srv.opts.Broker.MaxMessageBytes(), &c.usage)
	if err != nil {
		return err
	}
	c.published = true // unfinished publishes take memory, too
	if m == nil {
		return nil
	}
	err = ch.publish(m)
	ch.content.release(&c.usage)
	if c.flow.costly || ch.full() {
		c.flush()
	}
	return err
}

// flushEntries is how many messages in queues one flush makes, give or take those of one publish: what one read brings may be a thousand
// publishes, and each of them go to tens of thousands of queues.
const flushEntries = 1 << 14

func (ch *channel) full() bool { return ch.dirty && ch.publisher.Entries() >= flushEntries }

// publish adds a complete message to the batch, or returns it to the client.
func (ch *channel) publish(m *broker.Publication) error {
	if err := ch.awaitUnblocked(); err != nil {
		return err
	}
	if tx := ch.tx.Load(); tx != nil {
		return ch.publishLater(tx, m)
	}
	routed, err := ch.addWhenRoom(m)
	if err != nil {
		return err
	}
	if c := ch.confirms.Load(); c != nil {
		c.published++
	}
	if !ch.dirty {
		ch.dirty = true
		ch.conn.dirty = append(ch.conn.dirty, ch)
	}
	ch.unflushed.published++
	switch {
	case routed:
	case ch.content.mandatory:
		ch.unflushed.returned++
		ch.conn.out.SendReturn(ch.id, m) // a confirm comes after it
	default:
		ch.unflushed.dropped++
	}
	return nil
}

// flushPublishes makes the batch enter its queues, and confirms it once it is as durable as
// the store promises.
func (ch *channel) flushPublishes() {
	ch.dirty = false
	ch.refused = ch.publisher.Flush(ch.refused)
	ch.countPublishes()
	if ch.ten != nil {
		ch.ten.confirm(ch.refused)
		return
	}
	c := ch.confirms.Load()
	if c == nil {
		return
	}
	batch, some := c.next(ch.refused)
	if !some {
		return
	}
	ch.conn.srv.opts.Broker.Commit(func(err error) {
		if err == nil {
			ch.conn.srv.Totals.Confirmed.Add(c.confirm(batch, &ch.conn.out, ch.id))
		}
	})
}

// countPublishes adds what was published since the last flush to the totals.
func (ch *channel) countPublishes() {
	ch.published.add(&ch.unflushed)
	ch.conn.srv.Totals.addPublishes(&ch.unflushed, ch.confirms.Load() != nil)
	ch.unflushed = publishCounts{}
}

func (ch *channel) confirmSelect(m *amqp.ConfirmSelect) error {
	if ch.tx.Load() != nil {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot switch from tx to confirm mode")
	}
	if ch.confirms.Load() == nil {
		ch.confirms.Store(&confirms{})
	}
	return ch.reply(m.NoWait, &amqp.ConfirmSelectOk{})
}
