package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// settleBatch gathers settlements, so that a queue is locked once for a run of them.
type settleBatch struct {
	how  broker.Settlement
	q    *broker.Queue
	wake *broker.Consumer
	seqs []queue.Seq
}

// add adds one delivery to the run, or begins a new run.
func (s *settleBatch) add(how broker.Settlement, h unackedDelivery) {
	var wake *broker.Consumer
	if h.c != nil {
		wake = &h.c.Consumer
	}
	if s.q != h.q || s.how != how || s.wake != wake {
		s.flush()
		s.q, s.how, s.wake = h.q, how, wake
	}
	s.seqs = append(s.seqs, h.seq)
}

func (s *settleBatch) flush() {
	if len(s.seqs) == 0 {
		return
	}
	s.q.Settle(s.how, s.seqs, s.wake)
	s.q, s.wake, s.seqs = nil, nil, s.seqs[:0]
}

// settle ends the delivery with a tag; with multiple, all deliveries up to it (0: all). It
// takes effect at the connection's next flush.
func (ch *channel) settle(how broker.Settlement, tag uint64, multiple bool, id amqp.MethodID) error {
	if ch.tx != nil {
		return ch.settleLater(how, tag, multiple, id)
	}
	ch.mu.Lock()
	if !ch.takeUnackedLocked(tag, multiple) {
		ch.mu.Unlock()
		return unknownTag(tag, id)
	}
	ch.countSettledLocked(how)
	starving := len(ch.starved) > 0
	ch.mu.Unlock()
	var err error
	for _, h := range ch.settled {
		if h.seq == 0 {
			err = lapsedLock(tag, h.q, id)
			continue
		}
		ch.conn.acks.add(how, h)
	}
	if starving {
		ch.conn.acks.flush()
		ch.serveStarved()
	}
	return err
}

// lapsedLock refuses to settle a message whose lock has lapsed. If a multiple settlement
// names other messages as well, they are settled.
func lapsedLock(tag uint64, q *broker.Queue, id amqp.MethodID) error {
	return amqp.NewException(amqp.PreconditionFailed, id.Class(), id.Method(),
		"the lock on delivery tag %d has lapsed: the message went back to %s after its x-lock-duration", tag, q.Label())
}

// Lapsed implements broker.Holder.
func (ch *channel) Lapsed(id uint64, seq queue.Seq) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.unacked.lapse(id, seq) || ch.tx.lapseLocked(id, seq)
}

// Lapsed implements broker.Holder.
func (c *consumer) Lapsed(id uint64, seq queue.Seq) bool { return c.ch.Lapsed(id, seq) }

func unknownTag(tag uint64, id amqp.MethodID) error {
	return amqp.NewException(amqp.PreconditionFailed, id.Class(), id.Method(), "unknown delivery tag %d", tag)
}

// takeUnackedLocked moves the deliveries that a settlement names to ch.settled, and gives
// their consumers the credit back. It returns false if there are none.
func (ch *channel) takeUnackedLocked(tag uint64, multiple bool) bool {
	ch.settled = ch.settled[:0]
	if multiple {
		ch.settled = ch.unacked.takeUpTo(tag, ch.settled)
	} else if h, ok := ch.unacked.take(tag); ok {
		ch.settled = append(ch.settled, h)
	}
	for _, h := range ch.settled {
		ch.giveCreditLocked(h)
	}
	return len(ch.settled) > 0 || multiple && tag == 0
}

// giveCreditLocked stops counting a delivery that ends against the prefetch limits.
func (ch *channel) giveCreditLocked(h unackedDelivery) {
	if h.c != nil {
		h.c.inFlight--
		ch.inFlight--
	}
}

// returnUnacked requeues everything that the channel holds, in order.
func (ch *channel) returnUnacked() {
	ch.mu.Lock()
	ch.takeUnackedLocked(0, true)
	ch.mu.Unlock()
	for _, h := range ch.settled {
		if h.seq != 0 {
			ch.conn.acks.add(broker.Requeue, h)
		}
	}
	ch.conn.acks.flush()
	ch.serveStarved()
}

// recover requeues all unacked deliveries (basic.recover).
func (ch *channel) recover(requeue, answer bool) error {
	if !requeue {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "requeue=false")
	}
	ch.returnUnacked()
	return ch.reply(!answer, &amqp.BasicRecoverOk{})
}
