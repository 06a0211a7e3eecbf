package manage

import (
	"cmp"
	"hash/crc32"
	"slices"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/queue"
	"curfew/broker/server/internal/convert"
	"curfew/broker/servicebus"
)

// The number of a message that is scheduled is marked: it gets another when it is enqueued, as in Service Bus. Its last
// octets are a checksum of its properties, since its place among the scheduled can be given again after a restart: then
// the number that a client still has is not that of another message.
const (
	scheduledBit = 1 << 62
	checkBits    = 16
)

func scheduledNumber(x *broker.DelayedMessage) int64 {
	return scheduledBit | int64(x.Ref.Seq)<<checkBits | int64(crc32.ChecksumIEEE(x.Properties)&(1<<checkBits-1))
}

// Entity is a queue, a topic or a subscription, for one request.
type Entity struct {
	Broker        *broker.Broker
	VHost         *broker.VHost
	Queue         *broker.Queue // nil: it is a topic
	Rights        *broker.Rights
	Exchange, Key string // where it is published to
	// Add publishes messages of AMQP 1.0 to it: all or none. It returns their numbers.
	Add func(messages [][]byte) ([]broker.Numbered, error)

	From []*broker.Queue // in which Settle has settled something
}

// Manage carries out a request. An error is an *amqp.Exception for the client, or ends its connection.
func (e *Entity) Manage(r *servicebus.Request) (servicebus.Answer, error) {
	switch operation := r.Operation(); {
	case operation == "schedule-message":
		return e.schedule(r)
	case operation == "cancel-scheduled-message":
		return e.cancel(r), nil
	case e.Queue == nil:
		return servicebus.Answer{}, amqp.NewException(amqp.NotAllowed, 0, 0, "it is a topic, from which nothing is received")
	case operation == "peek-message":
		return e.peek(r)
	case operation == "renew-lock":
		return e.renewLocks(r), nil
	case operation == "update-disposition":
		return e.settle(r)
	case operation == "receive-by-sequence-number":
		return e.receiveDeferred(r), nil
	case operation == "enumerate-rules" || operation == "add-rule" || operation == "remove-rule":
		return e.rules(r)
	}
	return servicebus.Answer{}, amqp.NewException(amqp.NotImplemented, 0, 0, "the operation '%s' is not supported", r.Operation())
}

const (
	maxPeeked   = 256
	peekedBytes = 1 << 20 // about as much as Service Bus returns at once
)

// peek reads messages without locking them, by their numbers and in all states.
func (e *Entity) peek(r *servicebus.Request) (servicebus.Answer, error) {
	from, most := max(r.Number("from-sequence-number"), 0), int(min(max(r.Number("message-count"), 1), maxPeeked))
	var all []*convert.ServiceBus
	if from < scheduledBit {
		page, err := e.Queue.Messages.Browse(broker.Browse{After: queue.Seq(max(from-1, 0)), Count: most, BodyBytes: -1, Bytes: peekedBytes})
		if err != nil {
			return servicebus.Answer{}, err
		}
		all = e.shown(page)
	}
	if d := e.deferred(); d != nil && from < scheduledBit {
		for after := queue.Seq(0); ; {
			page, err := d.Messages.Browse(broker.Browse{After: after, Count: maxPeeked, BodyBytes: -1, Bytes: peekedBytes})
			if err != nil {
				return servicebus.Answer{}, err
			}
			if len(page) == 0 {
				break
			}
			after = page[len(page)-1].Seq
			all = append(all, slices.DeleteFunc(e.shown(page), func(m *convert.ServiceBus) bool {
				m.WasDeferred()
				return m.Number < from
			})...)
			slices.SortFunc(all, func(x, y *convert.ServiceBus) int { return cmp.Compare(x.Number, y.Number) })
			all = first(all, most)
		}
	}
	for next := uint64(from&^scheduledBit*(from>>62)) >> checkBits; len(all) < most; {
		var page []broker.DelayedMessage
		page, next = e.VHost.Delayed(next, maxPeeked)
		for i := range page {
			x := &page[i]
			if n := scheduledNumber(x); n >= from && x.Exchange == "" && x.RoutingKey == e.Queue.Name && len(all) < most {
				all = append(all, &convert.ServiceBus{Properties: x.Properties, Body: e.VHost.DelayedBody(x.Ref), Number: n, State: convert.Scheduled})
			}
		}
		if next == 0 {
			break
		}
	}
	list := amqp10.List{}
	for _, m := range first(all, most) {
		list = append(list, amqp10.Map{{Key: "message", Value: m.Append(nil)}})
	}
	if len(list) == 0 {
		return noContent, nil
	}
	return done(amqp10.Map{{Key: "messages", Value: list}}), nil
}

// first are the first of the messages: as many as are wanted and fit into an answer, but one at least.
func first(all []*convert.ServiceBus, most int) []*convert.ServiceBus {
	all = all[:min(len(all), most)]
	size := 0
	for i, m := range all {
		if size += len(m.Body) + len(m.Properties); size > peekedBytes && i > 0 {
			return all[:i]
		}
	}
	return all
}

// shown are the messages of a page that have not expired.
func (e *Entity) shown(page []broker.Browsed) (all []*convert.ServiceBus) {
	for i := range page {
		if x := &page[i]; !x.Expired || x.State == queue.Unacked {
			all = append(all, e.browsed(x))
		}
	}
	return all
}

// browsed is a message as it is in its queue.
func (e *Entity) browsed(x *broker.Browsed) *convert.ServiceBus {
	m := &convert.ServiceBus{Properties: x.Message.Properties, Body: x.Message.Body, Number: int64(x.Seq), Failed: x.Failed}
	if x.EnqueuedAt != 0 {
		m.EnqueuedAt = e.Broker.UnixMillis(x.EnqueuedAt)
	}
	if x.Deadline != 0 {
		m.ExpiresAt = e.Broker.UnixMillis(x.Deadline)
	}
	return m
}

// schedule publishes messages that say when they are to be enqueued: all or none.
func (e *Entity) schedule(r *servicebus.Request) (servicebus.Answer, error) {
	var all [][]byte
	for _, v := range r.List("messages") {
		m, _ := v.(amqp10.Map)
		one, ok := m.Get("message").([]byte)
		if !ok {
			return servicebus.Answer{}, amqp.NewException(amqp.PreconditionFailed, 0, 0, "a message to be scheduled is missing")
		}
		all = append(all, one)
	}
	given, err := e.Add(all)
	if err != nil {
		return servicebus.Answer{}, err
	}
	numbers := make(amqp10.Array, len(all))
	for i := range numbers {
		numbers[i] = int64(0) // no subscription takes it
	}
	for _, n := range given {
		numbers[n.Publish] = int64(n.Seq)
		if n.Delayed { // those that were due are in their queues, and cannot be cancelled
			x := e.delayed(uint64(n.Seq))
			numbers[n.Publish] = scheduledNumber(&x)
		}
	}
	return done(amqp10.Map{{Key: "sequence-numbers", Value: numbers}}), nil
}

// cancel drops messages that wait to be enqueued.
func (e *Entity) cancel(r *servicebus.Request) servicebus.Answer {
	for _, v := range r.List("sequence-numbers") {
		n := servicebus.Number(v)
		x := e.delayed(uint64(n&^scheduledBit) >> checkBits)
		if n != scheduledNumber(&x) || x.Exchange != e.Exchange || x.RoutingKey != e.Key || !e.VHost.CancelDelayed(x.Ref) {
			return notThere
		}
	}
	return done(nil)
}

// delayed is the message at a place among the scheduled. One that is gone, because it was due at once, is nothing but its place.
func (e *Entity) delayed(place uint64) (x broker.DelayedMessage) {
	x.Ref.Seq = place
	if page, _ := e.VHost.Delayed(place, 1); len(page) == 1 && page[0].Ref.Seq == place {
		return page[0]
	}
	return x
}

// noContent answers a request for a list that is empty.
var noContent = servicebus.Answer{Status: 204, Description: "NoContent"}

// notThere answers a request about a message that is gone.
var notThere = servicebus.Answer{Status: 404, Description: "The message with this sequence number could not be found.", Condition: "com.microsoft:message-not-found"}

// LockLost is what a client is told about a lock that is lost.
const LockLost = "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue."

// lockGone answers a request about a lock that is lost.
var lockGone = servicebus.Answer{Status: 410, Description: LockLost, Condition: "com.microsoft:message-lock-lost"}

func done(body amqp10.Map) servicebus.Answer {
	return servicebus.Answer{Status: 200, Description: "OK", Body: body}
}

func (e *Entity) renewLocks(r *servicebus.Request) servicebus.Answer {
	until := amqp10.Array{}
	for _, v := range r.List("lock-tokens") {
		token, _ := v.(amqp10.UUID)
		at, renewed := e.Queue.Messages.Locks.Renew(servicebus.TokenText(e.Queue.ID, token))
		if d := e.deferred(); d != nil && !renewed {
			at, renewed = d.Messages.Locks.Renew(servicebus.TokenText(d.ID, token))
		}
		if !renewed {
			return lockGone
		}
		until = append(until, amqp10.Timestamp(at))
	}
	return done(amqp10.Map{{Key: "expirations", Value: until}})
}

// settle settles deliveries by their locks, whichever link they came over.
func (e *Entity) settle(r *servicebus.Request) (servicebus.Answer, error) {
	o := Outcome{Why: &broker.Rejection{}}
	o.Changes, _ = r.Arg("properties-to-modify").(amqp10.Map)
	switch status, _ := r.Arg("disposition-status").(string); status {
	case "completed":
	case "abandoned":
		o.How = broker.Requeue
	case "defered":
		o.Defers = true
	case "suspended":
		o.How = broker.Reject
		o.Why.Reason, o.Why.Description = textOf(r.Arg("deadletter-reason")), textOf(r.Arg("deadletter-description"))
	default:
		return servicebus.Answer{}, amqp.NewException(amqp.NotImplemented, 0, 0, "the disposition '%s' is not supported", status)
	}
	for _, v := range r.List("lock-tokens") {
		token, _ := v.(amqp10.UUID)
		in := e.Queue
		seq, c, ok := in.Messages.Locks.Take(servicebus.TokenText(in.ID, token))
		if d := e.deferred(); d != nil && !ok {
			in = d
			seq, c, ok = d.Messages.Locks.Take(servicebus.TokenText(d.ID, token))
		}
		if !ok {
			return lockGone, nil
		}
		if err := e.Settle(broker.Settling{Queue: in, Seqs: []queue.Seq{seq}, Consumer: c}, &o); err != nil {
			return servicebus.Answer{}, err
		}
	}
	return done(nil), nil
}

// Settle settles deliveries of the entity, or of its deferred messages. It gives back those that it cannot settle so, and returns an error.
func (e *Entity) Settle(x broker.Settling, o *Outcome) (err error) {
	if len(e.From) == 0 || e.From[len(e.From)-1] != x.Queue {
		e.From = append(e.From, x.Queue)
	}
	if !o.Defers && o.change() == nil {
		x.Queue.Messages.SettleFor(o.How, x.Seqs, x.Consumer, o.Why)
		return nil
	}
	for _, seq := range x.Seqs {
		one := broker.Settling{Queue: x.Queue, How: o.How, Seqs: []queue.Seq{seq}, Consumer: x.Consumer}
		if o.Defers && x.Queue == e.Queue {
			err = cmp.Or(e.Defer(one, o.Changes), err)
			continue
		}
		var failed error
		if change := o.change(); change != nil {
			failed = x.Queue.Messages.Rewrite(seq, change)
		}
		if o.Defers || failed != nil { // it is deferred as it was
			one.How = broker.Release
		}
		x.Queue.Messages.SettleFor(one.How, one.Seqs, one.Consumer, o.Why)
		if failed != nil {
			err = amqp.NewException(amqp.PreconditionFailed, 0, 0, "the properties cannot be changed now: %s", failed)
		}
	}
	return err
}
