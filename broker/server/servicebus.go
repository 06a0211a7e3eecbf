package server

import (
	"errors"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/policy"
	"curfew/broker/server/internal/convert"
	"curfew/broker/server/internal/deliveries"
	"curfew/broker/server/internal/manage"
	"curfew/broker/servicebus"
)

const (
	busMechanism = "MSSBCBS" // nobody is logged in: tokens follow
	busAnonymous = "ANONYMOUS"

	busBatch = 0x80013700 // message format
)

// busClient is what a connection has for a client of Azure Service Bus. It belongs to the reader.
type busClient struct {
	local  bool
	claims map[string]busClaims // by entity, in lower case
	idle   *time.Timer          // closes the connection unless a valid token comes
	cbs    [2]*link10           // the links from and to $cbs, of which there is one pair
}

type busClaims struct {
	servicebus.Claims
	until time.Time
}

// busIdle is how long a connection may be without a valid token.
const busIdle = time.Minute

// maxBusClaims is for how many entities a connection may have tokens.
const maxBusClaims = 4096

// allow refuses what no valid token allows.
func (b *busClient) allow(entity string, claims servicebus.Claims) error {
	if has := b.claims[strings.ToLower(entity)]; has.Claims&claims != 0 && has.until.After(time.Now()) {
		return nil
	}
	name := "Listen"
	if claims == servicebus.Send {
		name = "Send"
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0, "Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'", name, entity)
}

// busEntity finds an entity: a queue, or an exchange, for which q is nil. Names have no case, but one that is
// exactly the same comes first.
func (s *session10) busEntity(name string) (q *broker.Queue, err error) {
	vh := s.p.c.user.VHost
	missing := amqp.NewException(amqp.NotFound, 0, 0, "The messaging entity '%s' could not be found.", name)
	if strings.HasSuffix(strings.ToLower(name), servicebus.DeferredSuffix) {
		return nil, missing // it is a part of another
	}
	if q, err = vh.Queues.Get(vh.Queues.NameOf(name)); err == nil {
		return q, nil
	}
	if _, err = vh.Exchanges.Get(name); err == nil && name != "" { // Check would count as use
		return nil, nil
	}
	if q, err = vh.Queues.GetAnyCase(name); err != nil {
		return nil, missing
	}
	return q, nil
}

// busSource finds the queue that a client wants to receive from; nil: it is a node, which answers requests.
func (s *session10) busSource(l *link10, m *amqp10.Attach, address string) (*broker.Queue, error) {
	address = servicebus.PathOf(address)
	if is, err := s.busNode(l, m, address); is {
		return nil, err
	}
	if filter, _ := m.Source.Filter.(amqp10.Map); len(filter) > 0 {
		return nil, amqp.NewException(amqp.NotImplemented, 0, 0, "sessions and other filters are not supported")
	}
	if err := s.p.bus.allow(address, servicebus.Listen); err != nil {
		return nil, err
	}
	q, err := s.busEntity(address)
	switch {
	case err != nil:
		return nil, err
	case q == nil:
		return nil, amqp.NewException(amqp.NotAllowed, 0, 0, "'%s' is a topic: receive from one of its subscriptions", address)
	}
	l.entity = address
	s.ch.deliveries.KeepLocks = true
	return s.p.c.user.QueueToRead(q.Name, "")
}

// busTarget finds where a client wants to send to.
func (s *session10) busTarget(l *link10, address string) error {
	address = servicebus.PathOf(address)
	if is, err := s.busNode(l, nil, address); is {
		return err
	}
	return s.busPublishTo(l, address)
}

func (s *session10) busPublishTo(l *link10, entity string) error {
	if err := s.p.bus.allow(entity, servicebus.Send); err != nil {
		return err // before anything is told
	}
	l.entity = entity
	q, err := s.busEntity(entity)
	_, subscription := servicebus.Split(entity)
	switch {
	case err != nil:
		return err
	case policy.IsSubqueue(entity):
		return amqp.NewException(amqp.NotAllowed, 0, 0, "'%s' is a dead-letter queue: nothing can be sent to it", entity)
	case subscription != "":
		return amqp.NewException(amqp.NotAllowed, 0, 0, "'%s' is a subscription: send to its topic", entity)
	case q == nil:
		return s.publishTo(l, entity, "")
	}
	return s.publishTo(l, "", q.Name)
}

// busNode makes a link one of a node, if its address is that of one.
func (s *session10) busNode(l *link10, m *amqp10.Attach, address string) (is bool, err error) {
	entity, managed := servicebus.Managed(address)
	if !managed && address != servicebus.CBS {
		return false, nil
	}
	l.bus = &busNode{entity: entity, cbs: !managed}
	if m != nil {
		l.bus.names[0] = m.Name
		if m.Target != nil {
			l.bus.names[1], _ = m.Target.Address.(string)
		}
	}
	if !managed {
		side := &s.p.bus.cbs[0]
		if l.toClient {
			side = &s.p.bus.cbs[1]
		}
		if *side != nil && !(*side).gone {
			return true, amqp.NewException(amqp.NotAllowed, 0, 0, "there is a link to $cbs on this connection already")
		}
		*side = l
		return true, nil
	}
	if err := s.p.bus.allow(entity, servicebus.Listen|servicebus.Send); err != nil {
		return true, err
	}
	_, err = s.busEntity(entity)
	return true, err
}

// deliverBus sends a message to a client of Service Bus.
func (l *link10) deliverBus(o *deliveries.Outbox, tag uint64, m *broker.Delivery) {
	s := l.s
	sent := convert.ServiceBus{Properties: m.Message.Properties, Body: m.Message.Body, Number: int64(m.Seq), Failed: m.Failed}
	token := servicebus.LockToken(sent.ReadHeaders(), uint64(m.Seq))
	s.tag = servicebus.DeliveryTag(token)
	payload := l.begin(tag, l.settled)
	s.out = sent.Append(s.out)
	l.sendLocked(o, tag, l.settled, payload)
}

// lockLost is the outcome of a settlement that comes too late.
var lockLost = &amqp10.State{Kind: amqp10.StateRejected, Error: &amqp10.Error{
	Condition:   "com.microsoft:message-lock-lost",
	Description: manage.LockLost,
}}

// errQueueFull refuses a batch.
var errQueueFull = amqp.NewException(amqp.ResourceError, 0, 0, "a queue is full")

// addBatch adds the messages of a batch: all or none.
func (s *session10) addBatch(l *link10, message []byte) error {
	all, err := convert.Batch(message)
	if err != nil {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s", err)
	}
	_, err = s.addAll(l, all)
	return err
}

// addAll adds messages in one transaction, and returns their numbers.
func (s *session10) addAll(l *link10, all [][]byte) (numbers []broker.Numbered, err error) {
	s.p.c.flush()
	for _, one := range all {
		if _, err := s.add(l, one); err != nil {
			s.ch.publisher.Discard()
			return nil, err
		}
	}
	s.ch.publisher.AllOrNone = true // only batches are transactions here
	s.ch.refused = s.ch.publisher.Transact(nil, s.ch.refused)
	s.ch.unflushed.published += uint64(len(all))
	s.ch.countPublishes()
	if len(s.ch.refused) > 0 {
		return nil, errQueueFull
	}
	return s.ch.publisher.Numbered, nil
}

// settleAll settles what was gathered, all that it can. from are their queues. refused says why something went back.
func (s *session10) settleAll(b *deliveries.Batch, o *manage.Outcome) (from []*broker.Queue, refused *amqp.Exception) {
	if !b.Gathers {
		return nil, nil
	}
	for _, run := range b.Take() {
		e := s.entity(run.Queue)
		if failed, _ := errors.AsType[*amqp.Exception](e.Settle(run, o)); refused == nil {
			refused = failed
		}
		from = append(from, e.From...)
	}
	return from, refused
}

// entity is a queue as an entity; nil: a topic.
func (s *session10) entity(q *broker.Queue) *manage.Entity {
	return &manage.Entity{Broker: s.p.c.srv.opts.Broker, VHost: s.p.c.user.VHost, Queue: q, Rights: s.p.c.user.Rights}
}

// manage carries out a request to the $management of an entity. from are the queues in which it settled messages.
func (s *session10) manage(name string, r *servicebus.Request) (a servicebus.Answer, from []*broker.Queue, err error) {
	q, err := s.busEntity(name)
	if err != nil {
		return a, nil, err
	}
	e := s.entity(q)
	if op := r.Operation(); op == "schedule-message" || op == "cancel-scheduled-message" { // of a sender
		l := &link10{s: s}
		err = s.busPublishTo(l, name)
		e.Exchange, e.Key = string(l.exchange), string(l.key)
		e.Add = func(messages [][]byte) ([]broker.Numbered, error) { return s.addAll(l, messages) }
		if err == nil {
			err = s.ch.awaitUnblocked()
		}
	} else if err = s.p.bus.allow(name, servicebus.Listen); err == nil && q != nil {
		err = s.p.c.user.Rights.Queue(access.Read, q.Name)
	}
	if err == nil {
		a, err = e.Manage(r)
	}
	return a, e.From, err
}
