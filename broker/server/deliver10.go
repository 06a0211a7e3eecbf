package server

import (
	"encoding/binary"
	"fmt"
	"slices"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
	"curfew/broker/server/internal/deliveries"
	"curfew/broker/server/internal/manage"
)

// giveCredit lets the client send more on a link from it.
func (l *link10) giveCredit() {
	l.credit = linkCredit
	l.s.sendFlow(l, false)
}

// Credit implements deliveries.Link.
func (l *link10) Credit() bool {
	if l.s.ended || l.ended {
		return false
	}
	return l.credit > 0 && l.s.window > 0 && len(l.s.pending) == 0
}

// Deliver implements deliveries.Link.
func (l *link10) Deliver(o *deliveries.Outbox, tag uint64, m *broker.Delivery) {
	if l.s.p.bus != nil {
		l.deliverBus(o, tag, m)
		return
	}
	payload := l.begin(tag, l.settled)
	l.s.out = convert.Append(l.s.out, &convert.Delivery{
		Exchange: m.Message.Exchange, RoutingKey: m.Message.RoutingKey, Properties: m.Message.Properties, Body: m.Message.Body,
		Redelivered: m.Redelivered, Failed: m.Failed,
	})
	l.sendLocked(o, tag, l.settled, payload)
}

// transfer is the transfer of a message, or its first.
func (l *link10) transfer(tag uint64, settled bool) amqp10.Transfer {
	name := l.s.tag[:] // of Service Bus
	if l.s.p.bus == nil {
		name = name[:8]
		binary.BigEndian.PutUint64(name, tag)
	}
	return amqp10.Transfer{
		Handle: l.handle, DeliveryID: amqp10.Uint(uint32(tag - 1)), DeliveryTag: name, MessageFormat: amqp10.Uint(0), Settled: settled,
	}
}

// begin puts the beginning of a transfer into the session's frame. A message must be appended, and sendLocked follow.
func (l *link10) begin(tag uint64, settled bool) (payload int) {
	t := l.transfer(tag, settled)
	l.s.out, _ = amqp10.AppendTransfer(l.s.out[:0], l.s.id, &t)
	return len(l.s.out)
}

// sendLocked sends the session's frame, whose message begins at payload. If it is too large, it becomes several.
func (l *link10) sendLocked(o *deliveries.Outbox, tag uint64, settled bool, payload int) {
	s := l.s
	if message := s.out[payload:]; len(s.out) > s.p.frameMax || l.most > 0 && uint64(len(message)) > l.most {
		l.sendPartsLocked(o, tag, settled, message)
	} else {
		l.credit--
		l.count++
		s.putLocked(o, amqp10.EndFrame(s.out, 0))
	}
	if cap(s.out) > deliveries.Size64K {
		s.out = nil
	}
}

// sendPartsLocked sends a message in as many frames as it takes. One that is too large for the link is aborted, since its delivery-id has been
// given, and ends the link.
func (l *link10) sendPartsLocked(o *deliveries.Outbox, tag uint64, settled bool, message []byte) {
	s, t := l.s, l.transfer(tag, settled)
	if l.most > 0 && uint64(len(message)) > l.most {
		t.Aborted = true
		s.putLocked(o, amqp10.AppendFrame(nil, s.id, &t, nil))
		l.endLocked(o, &amqp10.Error{
			Condition: "amqp:link:message-size-exceeded", Description: fmt.Sprintf("a message of %d octets is larger than the link's max-message-size, which is %d", len(message), l.most),
		})
		return
	}
	l.credit--
	l.count++
	const overhead = 64 // of a frame with the performative
	frame := deliveries.NewBuffer(min(s.p.frameMax, len(message)+overhead))
	for t.More = true; t.More; {
		part := message[:min(len(message), s.p.frameMax-overhead)]
		message = message[len(part):]
		t.More = len(message) > 0
		frame = amqp10.AppendFrame(frame[:0], s.id, &t, part)
		s.putLocked(o, frame)
		t = amqp10.Transfer{Handle: l.handle, Settled: settled, More: t.More}
	}
	deliveries.RecycleBuffer(frame)
}

// putLocked sends a transfer, or lets it wait for the client's window.
func (s *session10) putLocked(o *deliveries.Outbox, frame []byte) {
	if len(s.pending) == 0 && s.window > 0 {
		o.RawLocked(frame)
		s.window--
		s.nextOut++
		return
	}
	s.pending = append(s.pending, slices.Clone(frame))
	s.p.c.usage.Add(int64(len(frame))) // until it is in the outbox, which draws for itself
}

// sendPendingLocked sends as many transfers as the client's window allows.
func (s *session10) sendPendingLocked(o *deliveries.Outbox) {
	for len(s.pending) > 0 && s.window > 0 {
		o.RawLocked(s.pending[0])
		s.p.c.usage.Add(-int64(len(s.pending[0])))
		s.pending[0] = nil
		s.pending = s.pending[1:]
		s.window--
		s.nextOut++
	}
	if len(s.pending) == 0 {
		s.pending = nil
	}
	o.FlushLocked()
}

// Ended implements deliveries.Link: the queue is gone.
func (l *link10) Ended() {
	o := &l.s.p.c.out
	o.Lock()
	defer o.Unlock()
	l.endLocked(o, &amqp10.Error{Condition: "amqp:resource-deleted", Description: "the queue was deleted"})
}

// endLocked detaches the link. What it holds goes back to the queue when the client detaches, too.
func (l *link10) endLocked(o *deliveries.Outbox, why *amqp10.Error) {
	l.ended = true
	o.RawLocked(amqp10.AppendFrame(nil, l.s.id, &amqp10.Detach{Handle: l.handle, Closed: true, Error: why}, nil))
	o.FlushLocked()
}

// disposition settles deliveries.
func (s *session10) disposition(m *amqp10.Disposition) error {
	if m.Role == amqp10.RoleSender {
		return nil // the broker has settled its own side already
	}
	last := m.First
	if m.Last.Set {
		last = m.Last.Value
	}
	outcome := manage.Outcome{How: broker.Release} // the default: settled without one
	switch {
	case m.State == nil || m.State.Kind == amqp10.StateReceived:
		if !m.Settled {
			return nil
		}
	case s.p.bus != nil:
		outcome = manage.OutcomeOf(m.State)
	case m.State.Kind == amqp10.StateAccepted:
		outcome.How = broker.Ack
	case m.State.Kind == amqp10.StateRejected, m.State.Kind == amqp10.StateModified:
		if m.State.Kind == amqp10.StateRejected || m.State.UndeliverableHere {
			outcome.How = broker.Reject
		} else if m.State.DeliveryFailed {
			outcome.How = broker.Requeue
		}
		added, err := convert.Added(m.State.Annotations)
		if err != nil {
			return err
		}
		if added != nil && outcome.How == broker.Reject {
			outcome.Why = &broker.Rejection{Properties: added, Modified: true}
		} else {
			outcome.Headers = added
		}
	case m.State.Kind != amqp10.StateReleased:
		return amqp.NewException(amqp.NotImplemented, 0, 0, "unknown outcome %#x", m.State.Kind)
	}
	acks := &s.p.c.acks
	if outcome.How != broker.Ack || outcome.Defers || outcome.Why != nil || len(outcome.Changes) > 0 { // it does not only consume the message
		acks.Flush()
		acks = &deliveries.Batch{Gathers: true}
	}
	err := s.ch.deliveries.SettleRange(acks, outcome.How, m.First, last)
	from, refused := s.settleAll(acks, &outcome)
	lost := err != nil && s.p.bus != nil
	if lost { // a client that has settled it already does not want to know
		err = nil
	}
	if err != nil || m.Settled {
		return err
	}
	s.p.c.acks.Flush()
	answer := &amqp10.Disposition{First: m.First, Last: amqp10.Uint(last), Settled: true, State: &amqp10.State{Kind: m.State.Kind}}
	switch {
	case lost:
		answer.State = lockLost
	case refused != nil:
		answer.State = &amqp10.State{Kind: amqp10.StateRejected, Error: convert.ErrorOf(refused)}
	}
	s.p.c.srv.opts.Broker.Commit(func(err error) {
		if err == nil {
			s.sendUnlessEnded(answer)
		}
	}, from...)
	return nil
}
