package server

import (
	"errors"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
	"curfew/broker/server/internal/deliveries"
)

// attach makes a link, or refuses it: with an attach that has no terminus, and a detach.
func (s *session10) attach(m *amqp10.Attach) error {
	if old := s.links[m.Handle]; m.Handle > 255 || old != nil && !old.refused {
		return amqp.NewException(convert.HandleInUse, 0, 0, "handle %d is in use, or above handle-max", m.Handle)
	}
	l := &link10{s: s, handle: m.Handle, name: m.Name, toClient: m.Role == amqp10.RoleReceiver, settled: m.SenderMode == amqp10.SendSettled}
	// Of what a client sends, the broker settles first, whatever is asked for.
	answer := &amqp10.Attach{Name: m.Name, Handle: m.Handle, Role: !m.Role, SenderMode: m.SenderMode, Source: m.Source, Target: m.Target}
	if l.toClient {
		answer.ReceiverMode, answer.InitialDeliveryCount = m.ReceiverMode, amqp10.Uint(0)
	}
	var err error
	switch unsettled, _ := m.Unsettled.(amqp10.Map); {
	case len(unsettled) > 0 || m.IncompleteUnsettled:
		err = amqp.NewException(amqp.NotImplemented, 0, 0, "a link cannot be resumed: attach it without unsettled deliveries")
	case l.toClient:
		err = s.source(l, m, answer)
	default:
		answer.MaxMessageSize = uint64(s.p.c.srv.opts.Broker.MaxMessageBytes())
		l.count = m.InitialDeliveryCount.Value
		err = s.target(l, m.Target)
	}
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		answer.Source, answer.Target = nil, nil
		s.p.send(s.id, answer)
		s.refuse(l, e)
		return nil
	}
	if err != nil {
		return err
	}
	s.links[m.Handle] = l
	s.p.send(s.id, answer)
	if !l.toClient {
		l.giveCredit()
	}
	return nil
}

// source begins to consume.
func (s *session10) source(l *link10, m, answer *amqp10.Attach) error {
	if m.Source == nil || m.Source.Dynamic {
		return amqp.NewException(amqp.NotImplemented, 0, 0, "a source needs the address of a queue; it cannot be dynamic")
	}
	address, _ := m.Source.Address.(string)
	q, err := s.sourceQueue(l, m, address)
	if err != nil || q == nil {
		return err
	}
	given := *m.Source
	given.Filter = nil // none is in force
	given.DefaultOutcome = amqp10.Described{Descriptor: amqp10.StateReleased, Value: amqp10.List{}}
	answer.Source = &given
	switch most := uint64(s.p.c.srv.opts.Broker.MaxMessageBytes()); {
	case s.p.bus != nil || m.MaxMessageSize == 0: // Azure's SDKs say less than they take
	case !l.settled:
		l.most = m.MaxMessageSize
	case m.MaxMessageSize < most:
		return amqp.NewException(amqp.NotImplemented, 0, 0, "max-message-size %d is below the broker's, which is %d: a message that is larger would be lost, since it is sent settled", m.MaxMessageSize, most)
	}
	if answer.SenderMode == amqp10.SendMixed {
		answer.SenderMode = amqp10.SendUnsettled
	}
	consume := &amqp.BasicConsume{Queue: q.Name, ConsumerTag: m.Name[:min(len(m.Name), 255)], NoAck: l.settled}
	if consume.Arguments, err = convert.ConsumeArguments(m); err != nil {
		return err
	}
	l.consumer, err = s.ch.deliveries.Consume(q, consume, l)
	return err
}

// sourceQueue finds the queue that a client consumes from; nil: a node answers there.
func (s *session10) sourceQueue(l *link10, m *amqp10.Attach, address string) (*broker.Queue, error) {
	if s.p.bus != nil {
		return s.busSource(l, m, address)
	}
	if l.node = nodes[address]; l.node != nil {
		return nil, nil
	}
	kind, name, _, err := convert.ParseAddress(address)
	if err == nil && kind != "queues" {
		err = amqp.NewException(amqp.NotFound, 0, 0, "the address %q is not /queues/QUEUE: only queues can be consumed from", address)
	}
	if err != nil {
		return nil, err
	}
	return s.p.c.user.QueueToRead(name, "")
}

// target checks where a client wants to publish to.
func (s *session10) target(l *link10, t *amqp10.Target) error {
	switch {
	case t == nil || t.Coordinator || t.Dynamic:
		return amqp.NewException(amqp.NotImplemented, 0, 0, "transactions and dynamic targets are not supported")
	case t.Address == nil && s.p.bus == nil: // a client of Service Bus has a token for each entity
		l.anonymous = true
		return nil
	}
	address, _ := t.Address.(string)
	if s.p.bus != nil {
		return s.busTarget(l, address)
	}
	if l.node = nodes[address]; l.node != nil {
		return nil
	}
	return s.route(l, address)
}

// route sets where a link publishes to.
func (s *session10) route(l *link10, address string) error {
	kind, name, key, err := convert.ParseAddress(address)
	if err != nil {
		return err
	}
	if kind == "queues" {
		name, key = "", name
		if _, err = s.p.c.user.VHost.Queues.Get(key); err != nil {
			return err
		}
	} else if err = s.p.c.user.VHost.Exchanges.Check(name); err != nil {
		return err
	}
	return s.publishTo(l, name, key)
}

// publishTo makes a link publish to an exchange with a key.
func (s *session10) publishTo(l *link10, exchange, key string) error {
	if err := s.p.c.user.Rights.Exchange(access.Write, exchange); err != nil {
		return err
	}
	l.exchange, l.key = []byte(exchange), []byte(key)
	return nil
}

// refuse ends a link because of a mistake. What the client sends before it knows is ignored, until it detaches, too.
func (s *session10) refuse(l *link10, e *amqp.Exception) {
	s.p.c.countError(e)
	s.p.c.log.Info("link closed", zap.Uint16("channel", s.id), zap.Uint32("handle", l.handle), zap.String("reason", e.Text))
	s.remove(l)
	l.refused = true
	s.links[l.handle] = &link10{s: s, handle: l.handle, toClient: l.toClient, refused: true}
	s.p.send(s.id, &amqp10.Detach{Handle: l.handle, Closed: true, Error: convert.ErrorOf(e)})
}

// detach ends a link because its client does.
func (s *session10) detach(l *link10) {
	s.remove(l)
	told := false
	s.ch.deliveries.Locked(func() { told = l.refused || l.ended })
	if !told {
		s.p.send(s.id, &amqp10.Detach{Handle: l.handle, Closed: true})
	}
}

// remove ends a link. What its client has not settled goes back to the queue.
func (s *session10) remove(l *link10) {
	delete(s.links, l.handle)
	l.abandon()
	l.gone = true
	s.ch.deliveries.Locked(func() { l.dropAnswersLocked() })
	if l.consumer != nil {
		s.ch.deliveries.Cancel(l.consumer.Tag)
		s.ch.deliveries.ReturnOf(&s.p.c.acks, broker.Release, l.consumer)
	}
}

// abandon gives up a message that has not arrived as a whole.
func (l *link10) abandon() {
	l.s.p.c.usage.Add(-int64(cap(l.buf)))
	deliveries.RecycleBuffer(l.buf)
	l.begun, l.buf = false, nil
}
