package entity

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/server/internal/convert"
	"curfew/broker/servicebus"
)

// maxDeferred is how many deferred messages of a queue are looked at to find those with certain numbers.
const maxDeferred = 1 << 14

// deferred is the queue with the deferred messages; nil: there has been none.
func (e *Entity) deferred() *broker.Queue {
	d, err := e.VHost.Queues.Get(e.Queue.Name() + servicebus.DeferredSuffix)
	if err != nil {
		return nil
	}
	return d
}

// makeDeferred is deferred, and makes that queue.
func (e *Entity) makeDeferred() (*broker.Queue, error) {
	q := e.Queue
	if d := e.deferred(); d != nil {
		return d, nil
	}
	args := amqp.Table{"x-delivery-deadline": true, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": q.Name() + policy.SubqueueSuffix}
	settings := q.Settings()
	if settings.LockMillis > 0 {
		args["x-lock-duration"] = settings.LockMillis
	}
	if settings.MaxDeliveries > 0 {
		args["x-max-delivery-count"] = settings.MaxDeliveries
	}
	if settings.DropsExpired {
		args[policy.DeadLetterExpiredArg] = false
	}
	return e.VHost.Queues.Declare(nil, q.Name()+servicebus.DeferredSuffix, broker.QueueDeclare{Durable: true, Args: args})
}

// Defer defers a delivery of the entity, or gives it back with an error.
func (e *Entity) Defer(x broker.Settling) error {
	d, err := e.makeDeferred()
	held, ok := x.Queue.BrowseOne(x.Seqs[0], -1)
	p, err2 := broker.ParseStored(held.Message.Properties)
	if err != nil || err2 != nil || !ok {
		x.Queue.Settle(broker.Release, x.Seqs, x.Consumer)
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "the message cannot be deferred now")
	}
	e.browsed(&held).Defer(&p)
	pub := e.VHost.OwnPublisher()
	if _, err := pub.Add(&broker.Publication{RoutingKey: []byte(d.Name()), Properties: p.Append(nil), Body: held.Message.Body}); err != nil {
		pub.Discard()
		x.Queue.Settle(broker.Release, x.Seqs, x.Consumer)
		return err
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
	page, err := d.Browse(broker.Browse{Count: maxDeferred, State: queue.Ready})
	if err != nil {
		return notThere
	}
	noAck := r.Number("receiver-settle-mode") == 0
	list := amqp10.List{}
	for i := range page {
		m := e.browsed(&page[i])
		if m.WasDeferred(); !wanted[m.Number] {
			continue
		}
		d.Receive(page[i].Seq, noAck, func(x *broker.Delivery) {
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
