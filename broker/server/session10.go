package server

import (
	"errors"
	"math"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
	"curfew/broker/server/internal/deliveries"
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
	refused  bool     // it is none: only the client does not know yet
	gone     bool     // it has ended
	bus      *busNode // of Service Bus; nil: it is one of messages
	entity   string   // of Service Bus, for which a token is needed; "": there is none
	node     node     // what answers requests on it; nil: it is one of messages

	// To the client, with the locks of the deliveries:
	consumer *deliveries.Consumer // nil: a link from the client, or to a node
	credit   uint32
	count    uint32
	most     uint64   // octets of a message; 0: no limit
	ended    bool     // the client was told so: the queue is gone, or a message is too large
	answers  [][]byte // of the node, that wait for credit
	waiting  int      // octets in them

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

func (s *session10) flow(m *amqp10.Flow) error {
	c := s.p.c
	var l *link10
	if m.Handle.Set {
		if l = s.links[m.Handle.Value]; l == nil {
			return amqp.NewException(convert.UnattachedHandle, 0, 0, "no link has the handle %d", m.Handle.Value)
		}
		if l.refused {
			l = nil
		}
	}
	if l != nil && l.toClient && l.entity != "" {
		if err := s.p.bus.allow(l.entity, servicebus.Listen); err != nil { // the token has expired
			c.flush()
			defer c.updatePaced()
			e, _ := errors.AsType[*amqp.Exception](err)
			s.refuse(l, e)
			return nil
		}
	}
	var closed bool // the window was: then every receiver may wait for it
	s.ch.deliveries.Locked(func() {
		closed = s.window == 0 || len(s.pending) > 0
		s.window = atMost31(m.NextIncomingID.Value + min(m.IncomingWindow, math.MaxInt32) - s.nextOut)
		s.sendPendingLocked(&c.out)
		if l != nil && l.toClient && m.LinkCredit.Set {
			l.credit = atMost31(m.DeliveryCount.Value + min(m.LinkCredit.Value, math.MaxInt32) - l.count)
		}
		for _, each := range s.links {
			each.sendAnswersLocked()
		}
	})
	for _, each := range s.links {
		if each.consumer != nil && (closed || each == l) {
			each.consumer.Wake()
		}
	}
	if l != nil && l.toClient && m.Drain {
		s.ch.deliveries.Locked(func() { l.count, l.credit = l.count+l.credit, 0 })
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
	s.ch.deliveries.Locked(func() {
		f := &amqp10.Flow{NextIncomingID: amqp10.Uint(s.nextIn), IncomingWindow: s.inLeft, NextOutgoingID: s.nextOut, OutgoingWindow: math.MaxInt32}
		if l != nil && !l.refused && !l.ended {
			f.Handle, f.DeliveryCount, f.LinkCredit, f.Drain = amqp10.Uint(l.handle), amqp10.Uint(l.count), amqp10.Uint(l.credit), drain
		}
		s.p.c.out.RawLocked(amqp10.AppendFrame(nil, s.id, f, nil))
		s.p.c.out.FlushLocked()
	})
}

// sendUnlessEnded sends a frame, unless the session has ended: its number may belong to another by
// now. Any goroutine may call it.
func (s *session10) sendUnlessEnded(all ...amqp10.Performative) {
	var b []byte
	for _, m := range all {
		b = amqp10.AppendFrame(b, s.id, m, nil)
	}
	o := &s.p.c.out
	s.ch.deliveries.Locked(func() {
		if !s.ended && !o.Dead {
			o.RawLocked(b)
			o.FlushLocked()
		}
	})
}

// close gives up what the session holds besides its deliveries. It may be called again.
func (s *session10) close() {
	for _, l := range s.links {
		l.abandon()
		l.gone = true
	}
	s.ch.deliveries.Locked(func() {
		for _, l := range s.links {
			l.dropAnswersLocked()
		}
		clear(s.links)
		for _, each := range s.pending {
			s.p.c.usage.Add(-int64(len(each)))
		}
		s.ended, s.pending = true, nil
	})
}
