package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// settling gathers settlements so that a queue is locked once for a run of them.
type settling struct {
	how  broker.Settlement
	q    *broker.Queue
	wake *broker.Consumer
	seqs []queue.Seq
}

// add joins one delivery to the run, or begins a new one.
func (s *settling) add(how broker.Settlement, h held) {
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

func (s *settling) flush() {
	if len(s.seqs) == 0 {
		return
	}
	s.q.Settle(s.how, s.seqs, s.wake)
	s.q, s.wake, s.seqs = nil, nil, s.seqs[:0]
}

// settle ends the delivery of a tag, or with multiple of all up to it (0: all).
// It takes effect at the connection's next flush.
func (ch *channel) settle(how broker.Settlement, tag uint64, multiple bool, id amqp.MethodID) error {
	if ch.tx != nil {
		return ch.settleLater(how, tag, multiple, id)
	}
	ch.mu.Lock()
	if !ch.takeHeld(tag, multiple) {
		ch.mu.Unlock()
		return unknownTag(tag, id)
	}
	ch.countSettled(how)
	starving := len(ch.starved) > 0
	ch.mu.Unlock()
	var err error
	for _, h := range ch.ending {
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

// lapsedLock refuses to settle what is not the client's any more. What a multiple
// settlement names besides is settled.
func lapsedLock(tag uint64, q *broker.Queue, id amqp.MethodID) error {
	return amqp.NewException(amqp.PreconditionFailed, id.Class(), id.Method(),
		"the lock on delivery tag %d has lapsed: the message went back to %s after its x-lock-duration", tag, q.Label())
}

// Lapsed implements broker.Holder.
func (ch *channel) Lapsed(q *broker.Queue, seq queue.Seq) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.unacked.lapse(q, seq) || ch.tx.lapse(q, seq)
}

// Lapsed implements broker.Holder.
func (c *consumer) Lapsed(q *broker.Queue, seq queue.Seq) bool { return c.ch.Lapsed(q, seq) }

func unknownTag(tag uint64, id amqp.MethodID) error {
	return amqp.NewException(amqp.PreconditionFailed, id.Class(), id.Method(), "unknown delivery tag %d", tag)
}

// takeHeld moves the deliveries that a settlement names to ch.ending and gives
// their consumers the credit back; false if it names none. Called with mu held.
func (ch *channel) takeHeld(tag uint64, multiple bool) bool {
	ch.ending = ch.ending[:0]
	if multiple {
		ch.ending = ch.unacked.takeUpTo(tag, ch.ending)
	} else if h, ok := ch.unacked.take(tag); ok {
		ch.ending = append(ch.ending, h)
	}
	for _, h := range ch.ending {
		ch.giveCredit(h)
	}
	return len(ch.ending) > 0 || multiple && tag == 0
}

// giveCredit counts a delivery that ends against no prefetch any more. Called
// with mu held.
func (ch *channel) giveCredit(h held) {
	if h.c != nil {
		h.c.inFlight--
		ch.inFlight--
	}
}

// returnUnacked gives back all that the channel holds, in order.
func (ch *channel) returnUnacked() {
	ch.mu.Lock()
	ch.takeHeld(0, true)
	ch.mu.Unlock()
	for _, h := range ch.ending {
		if h.seq != 0 {
			ch.conn.acks.add(broker.Requeue, h)
		}
	}
	ch.conn.acks.flush()
	ch.serveStarved()
}

// recover gives back all unacked deliveries (basic.recover).
func (ch *channel) recover(requeue, answer bool) error {
	if !requeue {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "requeue=false")
	}
	ch.returnUnacked()
	return ch.reply(!answer, &amqp.BasicRecoverOk{})
}
