package server

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
	"curfew/broker/server/internal/deliveries"
	"curfew/broker/server/internal/entity"
	"curfew/broker/server/internal/outbox"
	"curfew/broker/servicebus"
)

// session10 is what a channel has that is a session of AMQP 1.0. The ids of its deliveries are the
// channel's delivery tags less one. It belongs to the reader, but for what says that it needs the
// locks of the channel's deliveries (deliveries.Locked).
type session10 struct {
	p      *client10
	ch     *channel
	id     uint16 // the number on the wire
	links  map[uint32]*link10
	inLeft uint32
	nextIn uint32

	batch []convert.Outcome // of the publishes since the last flush
	added int               // of them, and of those that were sent settled, those that the publisher has

	properties []byte // scratch

	// With the locks:
	nextOut uint32
	window  uint32   // how many transfers the client takes
	pending [][]byte // the rest of a message for which the window was too small
	out     []byte   // scratch
	tag     [16]byte // scratch
	ended   bool
}

// link10 is a link. One to the client implements deliveries.Link.
type link10 struct {
	s        *session10
	handle   uint32
	name     string
	toClient bool
	settled  bool
	bus      *busNode // of Service Bus; nil: it is one of messages
	entity   string   // of Service Bus, for which a token is needed; "": there is none
	node     node     // what answers requests on it; nil: it is one of messages
	answers  [][]byte // of the node, on a link to the client that has no credit for them

	// To the client, with the locks of the deliveries:
	consumer *deliveries.Consumer // nil: a link from the client, or to a node
	credit   uint32
	count    uint32
	ended    bool // the client was told so: the queue is gone

	// From the client:
	exchange, key []byte
	anonymous     bool
	begun         bool // a message of several transfers
	first         amqp10.Transfer
	buf           []byte
}

func newSession10(p *client10, ch *channel, m *amqp10.Begin) *session10 {
	s := &session10{p: p, ch: ch, id: ch.id - 1, links: map[uint32]*link10{}, inLeft: inWindow, nextIn: m.NextOutgoingID, window: m.IncomingWindow}
	p.send(s.id, &amqp10.Begin{
		RemoteChannel: amqp10.Uint(uint32(s.id)), IncomingWindow: inWindow, OutgoingWindow: math.MaxInt32, HandleMax: 255, Properties: amqp10.Map{},
	})
	return s
}

func (s *session10) frame(m amqp10.Performative, payload []byte) error {
	switch m := m.(type) {
	case *amqp10.Attach:
		s.p.c.flush()
		defer s.p.c.updatePaced()
		return s.attach(m)
	case *amqp10.Flow:
		return s.flow(m)
	case *amqp10.Transfer:
		return s.transfer(m, payload)
	case *amqp10.Disposition:
		return s.disposition(m)
	case *amqp10.Detach:
		s.p.c.flush()
		defer s.p.c.updatePaced()
		if l := s.links[m.Handle]; l != nil {
			s.detach(l)
		}
		return nil
	}
	return amqp.NewException(amqp.CommandInvalid, 0, 0, "%T is not expected on a session", m)
}

// attach makes a link, or refuses it: with an attach that has no terminus, and a detach.
func (s *session10) attach(m *amqp10.Attach) error {
	if m.Handle > 255 || s.links[m.Handle] != nil {
		return amqp.NewException(convert.HandleInUse, 0, 0, "handle %d is in use, or above handle-max", m.Handle)
	}
	l := &link10{s: s, handle: m.Handle, name: m.Name, toClient: m.Role == amqp10.RoleReceiver, settled: m.SenderMode == amqp10.SendSettled}
	answer := &amqp10.Attach{
		Name: m.Name, Handle: m.Handle, Role: !m.Role, SenderMode: m.SenderMode, ReceiverMode: m.ReceiverMode, Source: m.Source, Target: m.Target,
	}
	var err error
	switch unsettled, _ := m.Unsettled.(amqp10.Map); {
	case len(unsettled) > 0:
		err = amqp.NewException(amqp.NotImplemented, 0, 0, "a link cannot be resumed: attach it without unsettled deliveries")
	case l.toClient:
		answer.InitialDeliveryCount = amqp10.Uint(0)
		err = s.source(l, m, answer)
	default:
		answer.MaxMessageSize = uint64(s.p.c.srv.opts.Broker.MaxMessageBytes())
		l.count = m.InitialDeliveryCount.Value
		err = s.target(l, m.Target)
	}
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		answer.Source, answer.Target = nil, nil
		s.p.send(s.id, answer)
		s.p.send(s.id, &amqp10.Detach{Handle: m.Handle, Closed: true, Error: convert.ErrorOf(e)})
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
	if answer.SenderMode == amqp10.SendMixed {
		answer.SenderMode = amqp10.SendUnsettled
	}
	l.consumer, err = s.ch.deliveries.Consume(q, &amqp.BasicConsume{Queue: q.Name(), ConsumerTag: m.Name[:min(len(m.Name), 255)], NoAck: l.settled}, l)
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

// detach ends a link because its client does.
func (s *session10) detach(l *link10) {
	s.remove(l)
	told := false
	s.ch.deliveries.Locked(func(uint64) { told = l.ended })
	if !told {
		s.p.send(s.id, &amqp10.Detach{Handle: l.handle, Closed: true})
	}
}

// remove ends a link. What its client has not settled goes back to the queue.
func (s *session10) remove(l *link10) {
	delete(s.links, l.handle)
	l.abandon()
	if l.bus != nil {
		s.ch.deliveries.Locked(func(uint64) {
			l.bus.gone = true
			l.dropBusAnswersLocked()
		})
	}
	if l.consumer != nil {
		s.ch.deliveries.Cancel(l.consumer.Tag)
		s.ch.deliveries.ReturnOf(&s.p.c.acks, broker.Release, l.consumer)
	}
}

// abandon gives up a message that has not arrived as a whole, and answers that have not been sent.
func (l *link10) abandon() {
	l.s.p.c.usage.Add(-int64(cap(l.buf)))
	l.begun, l.buf = false, nil
	for _, each := range l.answers {
		l.s.p.c.usage.Add(-int64(len(each)))
	}
	l.answers = nil
}

func (s *session10) flow(m *amqp10.Flow) error {
	c := s.p.c
	var l *link10
	if m.Handle.Set {
		if l = s.links[m.Handle.Value]; l == nil {
			return amqp.NewException(convert.UnattachedHandle, 0, 0, "no link has the handle %d", m.Handle.Value)
		}
	}
	if l != nil && l.toClient && l.entity != "" {
		if err := s.p.bus.allow(l.entity, servicebus.Listen); err != nil { // the token has expired
			c.flush()
			defer c.updatePaced()
			s.remove(l)
			e, _ := errors.AsType[*amqp.Exception](err)
			s.p.send(s.id, &amqp10.Detach{Handle: l.handle, Closed: true, Error: convert.ErrorOf(e)})
			return nil
		}
	}
	s.ch.deliveries.Locked(func(uint64) {
		s.window = atMost31(m.NextIncomingID.Value + m.IncomingWindow - s.nextOut)
		s.sendPendingLocked(&c.out)
		if l != nil && l.toClient && m.LinkCredit.Set {
			l.credit = atMost31(m.DeliveryCount.Value + m.LinkCredit.Value - l.count)
			l.sendAnswersLocked(&c.out)
		}
		for _, each := range s.links {
			each.sendBusAnswersLocked()
		}
	})
	for _, each := range s.links {
		if each.consumer != nil {
			each.consumer.Wake()
		}
	}
	if l != nil && l.toClient && m.Drain {
		s.ch.deliveries.Locked(func(uint64) { l.count, l.credit = l.count+l.credit, 0 })
	}
	if m.Echo || m.Drain && l != nil && l.toClient {
		s.sendFlow(l, m.Drain)
	}
	return nil
}

// atMost31 is 0 for what would be negative.
func atMost31(n uint32) uint32 {
	if n > math.MaxInt32 {
		return 0
	}
	return n
}

// sendFlow tells the client the state of the session and, if l is not nil, of a link.
func (s *session10) sendFlow(l *link10, drain bool) {
	s.ch.deliveries.Locked(func(uint64) {
		f := &amqp10.Flow{NextIncomingID: amqp10.Uint(s.nextIn), IncomingWindow: s.inLeft, NextOutgoingID: s.nextOut, OutgoingWindow: math.MaxInt32}
		if l != nil {
			f.Handle, f.DeliveryCount, f.LinkCredit, f.Drain = amqp10.Uint(l.handle), amqp10.Uint(l.count), amqp10.Uint(l.credit), drain
		}
		s.p.c.out.RawLocked(amqp10.AppendFrame(nil, s.id, f, nil))
		s.p.c.out.FlushLocked()
	})
}

// giveCredit lets the client send more on a link from it.
func (l *link10) giveCredit() {
	l.credit = linkCredit
	l.s.sendFlow(l, false)
}

// Credit implements deliveries.Link.
func (l *link10) Credit() bool {
	if l.s.ended {
		return false
	}
	return l.credit > 0 && l.s.window > 0 && len(l.s.pending) == 0
}

// Deliver implements deliveries.Link.
func (l *link10) Deliver(o *outbox.Outbox, tag uint64, m *broker.Delivery) {
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
func (l *link10) sendLocked(o *outbox.Outbox, tag uint64, settled bool, payload int) {
	s := l.s
	l.credit--
	l.count++
	if len(s.out) <= s.p.frameMax {
		s.putLocked(o, amqp10.EndFrame(s.out, 0))
		return
	}
	const overhead = 64 // of a frame with the performative
	t, rest := l.transfer(tag, settled), s.out[payload:]
	for t.More = true; t.More; {
		part := rest[:min(len(rest), s.p.frameMax-overhead)]
		rest = rest[len(part):]
		t.More = len(rest) > 0
		s.putLocked(o, amqp10.AppendFrame(nil, s.id, &t, part))
		t = amqp10.Transfer{Handle: l.handle, Settled: settled, More: t.More}
	}
	if cap(s.out) > outbox.Size64K {
		s.out = nil
	}
}

// putLocked sends a transfer, or lets it wait for the client's window.
func (s *session10) putLocked(o *outbox.Outbox, frame []byte) {
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
func (s *session10) sendPendingLocked(o *outbox.Outbox) {
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
	l.ended = true
	l.s.p.send(l.s.id, &amqp10.Detach{Handle: l.handle, Closed: true, Error: &amqp10.Error{Condition: "amqp:resource-deleted", Description: "the queue was deleted"}})
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
	how := broker.Release // settled without an outcome: the default outcome
	acks, outcome := &s.p.c.acks, entity.Outcome{}
	switch {
	case m.State == nil || m.State.Kind == amqp10.StateReceived:
		if !m.Settled {
			return nil
		}
	case s.p.bus != nil:
		outcome = entity.OutcomeOf(m.State)
		if how = outcome.How; !outcome.Plain() {
			acks.Flush()
			acks = &deliveries.Batch{Gathers: true}
		}
	case m.State.Kind == amqp10.StateAccepted:
		how = broker.Ack
	case m.State.Kind == amqp10.StateRejected, m.State.Kind == amqp10.StateModified:
		if m.State.Kind == amqp10.StateRejected || m.State.UndeliverableHere {
			how = broker.Reject
		} else if m.State.DeliveryFailed {
			how = broker.Requeue
		}
		added, err := convert.Added(m.State.Annotations)
		if err != nil {
			return err
		}
		if added != nil {
			acks.Flush()
			acks = &deliveries.Batch{Gathers: how != broker.Reject, Why: &broker.Rejection{Properties: added, Modified: true}}
			outcome = entity.Outcome{How: how, Headers: added}
		}
	case m.State.Kind != amqp10.StateReleased:
		return amqp.NewException(amqp.NotImplemented, 0, 0, "unknown outcome %#x", m.State.Kind)
	}
	err := s.ch.deliveries.SettleRange(acks, how, m.First, last)
	var refused *amqp.Exception
	if acks.Gathers {
		refused, _ = errors.AsType[*amqp.Exception](s.settleAll(acks.Take(), &outcome))
	}
	if acks != &s.p.c.acks {
		acks.Flush()
	}
	lost := err != nil && s.p.bus != nil
	if err != nil && !lost || m.Settled {
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
	})
	return nil
}

// sendUnlessEnded sends a frame, unless the session has ended: its number may belong to another by
// now. Any goroutine may call it.
func (s *session10) sendUnlessEnded(all ...amqp10.Performative) {
	var b []byte
	for _, m := range all {
		b = amqp10.AppendFrame(b, s.id, m, nil)
	}
	o := &s.p.c.out
	s.ch.deliveries.Locked(func(uint64) {
		if !s.ended && !o.DeadLocked() {
			o.RawLocked(b)
			o.FlushLocked()
		}
	})
}

// transfer takes a message, or a part of one.
func (s *session10) transfer(m *amqp10.Transfer, payload []byte) error {
	c := s.p.c
	l := s.links[m.Handle]
	if l == nil || l.toClient {
		return amqp.NewException(convert.UnattachedHandle, 0, 0, "no link from the client has the handle %d", m.Handle)
	}
	if s.inLeft == 0 {
		return amqp.NewException(convert.WindowViolation, 0, 0, "the session's incoming window is exceeded")
	}
	s.nextIn++
	if s.inLeft--; s.inLeft < inWindow/2 {
		s.inLeft = inWindow
		s.sendFlow(nil, false)
	}
	switch {
	case m.Resume:
		return amqp.NewException(amqp.NotImplemented, 0, 0, "a delivery cannot be resumed")
	case m.Aborted:
		l.abandon()
		return nil
	case !l.begun:
		l.first = *m
		l.first.DeliveryTag = nil // it may refer to the connection's buffer
	}
	l.first.Settled = l.first.Settled || m.Settled
	most := c.srv.opts.Broker.MaxMessageBytes() + 64<<10
	if l.node != nil || l.bus != nil && l.bus.cbs {
		most = maxRequest
	}
	if len(l.buf)+len(payload) > most {
		return amqp.NewException(amqp.ContentTooLarge, 0, 0, "the message is larger than %d octets", most)
	}
	c.published = c.published || l.node == nil && l.bus == nil
	if m.More || l.begun {
		was := cap(l.buf)
		l.buf = append(l.buf, payload...)
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
	l.abandon()
	l.count++
	if l.credit--; l.credit <= linkCredit/2 {
		l.giveCredit()
	}
	return err
}

// publish publishes a whole message. What is wrong with it is its outcome.
func (s *session10) publish(l *link10, message []byte) error {
	if err := s.ch.awaitUnblocked(); err != nil {
		return err
	}
	o := convert.Outcome{ID: l.first.DeliveryID.Value, Settled: l.first.Settled, Place: -1, State: amqp10.State{Kind: amqp10.StateReleased}}
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
	case refused && o.Settled:
		s.remove(l)
		s.p.send(s.id, &amqp10.Detach{Handle: l.handle, Closed: true, Error: convert.ErrorOf(e)})
		return nil
	case refused:
		o.State = amqp10.State{Kind: amqp10.StateRejected, Error: convert.ErrorOf(e)}
	case err != nil:
		return err
	case batch:
		o.State.Kind = amqp10.StateAccepted
	default:
		o.Place = s.added
		s.added++
		s.ch.unflushed.published++
		if o.State.Kind = amqp10.StateAccepted; !routed {
			s.ch.unflushed.returned++
			o.State.Kind = amqp10.StateReleased
		}
	}
	s.settle(o)
	if s.p.c.flow.costly {
		s.p.c.flush()
	}
	return nil
}

// settle tells the client an outcome at the next flush.
func (s *session10) settle(o convert.Outcome) {
	if !o.Settled {
		s.batch = append(s.batch, o)
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
	if s.properties = properties[:0]; cap(properties) > outbox.Size4K {
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
	all, confirmed := convert.Dispositions(s.batch, refused)
	s.batch, s.added = s.batch[:0], 0
	if len(all) == 0 {
		return
	}
	s.p.c.srv.opts.Broker.Commit(func(err error) {
		if err == nil {
			s.sendUnlessEnded(all...)
			s.p.c.srv.totals.confirmed.Add(confirmed)
		}
	})
}

// close gives up what the session holds besides its deliveries. It may be called again.
func (s *session10) close() {
	for _, l := range s.links {
		l.abandon()
	}
	s.ch.deliveries.Locked(func(uint64) {
		for _, l := range s.links {
			if l.bus != nil {
				l.bus.gone = true
				l.dropBusAnswersLocked()
			}
		}
		clear(s.links)
		for _, each := range s.pending {
			s.p.c.usage.Add(-int64(len(each)))
		}
		s.ended, s.pending = true, nil
	})
}
