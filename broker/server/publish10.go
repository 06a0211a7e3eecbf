package server

import (
	"errors"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
	"curfew/broker/server/internal/deliveries"
	"curfew/broker/servicebus"
)

// transfer takes a message, or a part of one.
func (s *session10) transfer(m *amqp10.Transfer, payload []byte) error {
	c := s.p.c
	l := s.links[m.Handle]
	if l == nil || l.toClient {
		return amqp.NewException(convert.UnattachedHandle, 0, 0, "no link from the client has the handle %d", m.Handle)
	}
	s.nextIn++
	if s.inLeft--; s.inLeft < inWindow/2 { // so it cannot be exceeded
		s.inLeft = inWindow
		s.sendFlow(nil, false)
	}
	switch {
	case l.refused:
		return nil
	case m.Resume:
		return amqp.NewException(amqp.NotImplemented, 0, 0, "a delivery cannot be resumed")
	case m.Aborted:
		l.counted()
		return nil
	case m.ReceiverMode != amqp10.ReceiveFirst:
		return amqp.NewException(amqp.NotImplemented, 0, 0, "a message cannot be settled second: the link's rcv-settle-mode is first")
	case l.begun && m.DeliveryID.Set && m.DeliveryID != l.first.DeliveryID:
		return amqp.NewException(amqp.NotAllowed, 0, 0, "delivery-id %d within the message that began as %d", m.DeliveryID.Value, l.first.DeliveryID.Value)
	case !l.begun && !m.DeliveryID.Set:
		return amqp.NewException(amqp.NotAllowed, 0, 0, "a message begins without a delivery-id")
	case !l.begun:
		l.first = *m
		l.first.DeliveryTag = nil // it may refer to the connection's buffer
	}
	l.first.Settled = l.first.Settled || m.Settled
	most := c.srv.opts.Broker.MaxMessageBytes() + 64<<10
	if l.node != nil || l.bus != nil && l.bus.cbs {
		most = maxRequest
	}
	switch {
	case len(l.buf)+len(payload) <= most:
	case l.node != nil || l.bus != nil:
		return amqp.NewException(amqp.ContentTooLarge, 0, 0, "the request is larger than %d octets", most)
	default:
		c.flush()
		defer c.updatePaced()
		s.refuse(l, amqp.NewException(amqp.ContentTooLarge, 0, 0, "the message is larger than the largest that is allowed, %d octets", c.srv.opts.Broker.MaxMessageBytes()))
		return nil
	}
	c.published = c.published || l.node == nil && l.bus == nil
	if m.More || l.begun {
		was := cap(l.buf)
		l.buf = deliveries.Extended(l.buf, payload, most)
		c.usage.Add(int64(cap(l.buf) - was))
		if l.begun = true; m.More {
			return nil
		}
		payload = l.buf
	}
	var err error
	switch {
	case l.node != nil:
		err = s.request(l, payload)
	case l.bus != nil:
		err = s.busRequest(l, payload)
	default:
		err = s.publish(l, payload)
	}
	l.counted()
	return err
}

// counted ends a message from the client, whether all of it has come or not, and gives the credit for others.
func (l *link10) counted() {
	l.abandon()
	l.count++
	if l.credit--; l.credit <= linkCredit/2 {
		l.giveCredit()
	}
}

// publish publishes a whole message. What is wrong with it is its outcome.
func (s *session10) publish(l *link10, message []byte) error {
	if err := s.ch.awaitUnblocked(); err != nil {
		return err
	}
	place, state := -1, amqp10.State{Kind: amqp10.StateReleased}
	batch := s.p.bus != nil && l.first.MessageFormat.Value == busBatch
	var routed bool
	var err error
	if s.p.bus != nil { // its token may have expired
		err = s.p.bus.allow(l.entity, servicebus.Send)
	}
	switch {
	case err != nil:
	case batch:
		err = s.addBatch(l, message)
	default:
		routed, err = s.add(l, message)
	}
	e, refused := errors.AsType[*amqp.Exception](err)
	switch {
	case refused && e.Hard() && e != errQueueFull:
		return e
	case refused && l.first.Settled:
		s.refuse(l, e)
		return nil
	case refused:
		state = amqp10.State{Kind: amqp10.StateRejected, Error: convert.ErrorOf(e)}
	case err != nil:
		return err
	case batch:
		state.Kind = amqp10.StateAccepted
	default:
		place = s.added
		s.added++
		s.ch.unflushed.published++
		if state.Kind = amqp10.StateAccepted; !routed {
			s.ch.unflushed.returned++
			state.Kind = amqp10.StateReleased
		}
	}
	s.settle(l, place, state)
	if s.p.c.flow.costly || s.ch.full() {
		s.p.c.flush()
	}
	return nil
}

// settle tells the client the outcome of a link's message at the next flush, unless it was settled when it came. place is its own in the publisher's
// batch, negative if it is not there.
func (s *session10) settle(l *link10, place int, state amqp10.State) {
	if !l.first.Settled {
		s.batch = append(s.batch, convert.Outcome{ID: l.first.DeliveryID.Value, Place: place, State: state})
	}
	if !s.ch.dirty {
		s.ch.dirty = true
		s.p.c.dirty = append(s.p.c.dirty, s.ch)
	}
}

func (s *session10) add(l *link10, message []byte) (routed bool, err error) {
	if s.properties == nil {
		s.properties = make([]byte, 0, 512)
	}
	bus := s.p.bus != nil
	filtered := bus && len(l.exchange) > 0 && s.p.c.user.VHost.Exchanges.KindOf(l.exchange) == servicebus.TopicKind // now: it can be made again
	properties, body, to, err := convert.Publish(s.properties, message, bus, filtered)
	if s.properties = properties[:0]; cap(properties) > deliveries.Size4K {
		s.properties = nil
	}
	if err != nil {
		return false, amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s", err)
	}
	if most := s.p.c.srv.opts.Broker.MaxMessageBytes(); len(body) > most {
		return false, amqp.NewException(amqp.ContentTooLarge, 0, 0, "message size %d is larger than configured max size %d", len(body), most)
	}
	if l.anonymous {
		if err := s.route(l, to); err != nil {
			return false, err
		}
	}
	return s.ch.addWhenRoom(&broker.Publication{Exchange: l.exchange, RoutingKey: l.key, Properties: properties, Body: body})
}

// confirm sends the outcomes of a batch once it is as durable as the store promises. refused are the
// places of those that a full queue refused.
func (s *session10) confirm(refused []int) {
	all, confirmed := convert.Dispositions(s.batch, refused), uint64(len(s.batch))
	s.batch, s.added = s.batch[:0], 0
	if len(all) == 0 {
		return
	}
	s.p.c.srv.opts.Broker.Commit(func(err error) {
		if err == nil {
			s.sendUnlessEnded(all...)
			s.p.c.srv.Totals.Confirmed.Add(confirmed)
		}
	})
}
