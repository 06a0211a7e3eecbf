package manage

import (
	"cmp"
	"errors"
	"maps"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/server/internal/convert"
	"curfew/broker/servicebus"
)

// defaultLock is how long a deferred message of a queue without locks is locked, in ms. Without a lock nobody could settle it.
const defaultLock int64 = 60_000

// deferred is the queue with the deferred messages; nil: there has been none.
func (e *Entity) deferred() *broker.Queue {
	d, err := e.VHost.Queues.Get(e.Queue.Name + policy.DeferredSuffix)
	if err != nil {
		return nil
	}
	return d
}

var errGone = errors.New("it or its queue is gone")

// makeDeferred is deferred, and makes that queue.
func (e *Entity) makeDeferred() (*broker.Queue, error) {
	q := e.Queue
	if d := e.deferred(); d != nil {
		return d, nil
	}
	settings := q.Settings()
	args := amqp.Table{"x-lock-duration": defaultLock}
	maps.Copy(args, settings.DeferredArgs())
	maps.DeleteFunc(args, func(_ string, v any) bool { return v == nil })
	args["x-delivery-deadline"] = true
	args["x-overflow"] = "drop-head" // one that is refused would be lost: it is settled in its queue
	switch {
	case settings.DeadLetters:
		key := settings.DeadLetterKey
		if !settings.HasDeadLetterKey {
			key = q.Name
		}
		args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"] = settings.DeadLetterExchange, key
	case policy.IsSubqueue(q.Name): // back to it
		args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"] = "", q.Name
	}
	return e.VHost.Queues.Declare(nil, q.Name+policy.DeferredSuffix, broker.QueueDeclare{Durable: true, Args: args})
}

// Defer defers a delivery of the entity, with some properties changed, or gives it back with an error.
func (e *Entity) Defer(x broker.Settling, changes amqp10.Map) error {
	d, err := e.makeDeferred()
	held, ok := x.Queue.Messages.BrowseOne(x.Seqs[0], -1)
	if changed := convert.Modify(held.Message.Properties, held.Message.Body, changes); changed != nil {
		held.Message.Properties = changed
	}
	p, err2 := broker.ParseStored(held.Message.Properties)
	routed := false
	pub := e.VHost.OwnPublisher()
	if err = cmp.Or(err, err2); err == nil && ok {
		e.browsed(&held).Defer(&p)
		routed, err = pub.Add(&broker.Publication{RoutingKey: []byte(d.Name), Properties: p.Append(nil), Body: held.Message.Body})
	}
	if !routed {
		pub.Discard()
		x.Queue.Messages.Settle(broker.Release, x.Seqs, x.Consumer)
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "the message cannot be deferred now: %s", cmp.Or(err, errGone))
	}
	x.How = broker.Ack
	pub.Transact([]broker.Settling{x}, nil)
	return nil
}

// receiveDeferred receives deferred messages by their numbers.
func (e *Entity) receiveDeferred(r *servicebus.Request) servicebus.Answer {
	d := e.deferred()
	if d == nil {
		return notThere
	}
	wanted := map[int64]bool{}
	for _, v := range r.List("sequence-numbers") {
		wanted[servicebus.Number(v)] = true
	}
	seqs, size, err := find(d, wanted)
	switch {
	case err != nil || len(seqs) == 0:
		return notThere
	case len(seqs) > 1 && size > peekedBytes: // before any is received
		return tooLarge
	}
	noAck := r.Number("receiver-settle-mode") == 0
	list := amqp10.List{}
	for _, seq := range seqs {
		d.Messages.Receive(seq, noAck, func(x *broker.Delivery) {
			m := convert.ServiceBus{Properties: x.Message.Properties, Body: x.Message.Body, Failed: x.Failed}
			token := servicebus.LockToken(m.ReadHeaders(), uint64(x.Seq))
			m.WasDeferred()
			m.LockToken = &token
			list = append(list, amqp10.Map{{Key: "lock-token", Value: token}, {Key: "message", Value: m.Append(nil)}})
		})
	}
	if len(list) == 0 {
		return notThere
	}
	return done(amqp10.Map{{Key: "messages", Value: list}})
}

// tooLarge answers a request for more than fits into an answer.
var tooLarge = servicebus.Answer{Status: 403, Description: "The messages are larger than 1 MiB together: receive fewer at once.", Condition: "amqp:resource-limit-exceeded"}

// find finds the deferred messages with those numbers, and the size of their bodies in octets.
func find(d *broker.Queue, wanted map[int64]bool) (seqs []queue.Seq, size int64, err error) {
	var page []broker.Browsed
	for b := (broker.Browse{Count: 1 << 10, State: queue.Ready, Bytes: peekedBytes}); len(seqs) < len(wanted); b.After = page[len(page)-1].Seq {
		if page, err = d.Messages.Browse(b); err != nil || len(page) == 0 {
			break
		}
		for i := range page {
			m := convert.ServiceBus{Properties: page[i].Message.Properties}
			if m.WasDeferred(); wanted[m.Number] {
				seqs, size = append(seqs, page[i].Seq), size+int64(page[i].BodyBytes)
			}
		}
	}
	return seqs, size, err
}
