package topology

import (
	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/internal/delivery"
)

// Binding names one binding from an exchange to a queue or, with ToExchange, to
// another exchange.
type Binding struct {
	Source, Destination, RoutingKey string
	ToExchange                      bool
	Args                            amqp.Table
}

// Bind adds the binding unless it exists (queue.bind, exchange.bind). Errors:
// 404 for a missing end, 403 on the default exchange, 405 on another connection's
// exclusive queue, 406 for arguments the exchange's type does not take.
func (vh *VHost) Bind(owner Owner, b Binding) error {
	return vh.guard.claimed(b.definition(vh.guard.name, false).Key(), func() error {
		x, d, err := vh.bothEndsLocked(owner, b)
		if err != nil {
			return err
		}
		if err := exchange.CheckArgs(x.kind, b.Args); err != nil {
			return amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s", err)
		}
		if !x.router.Bind(d, b.RoutingKey, b.Args) {
			x.reboundLocked(d)
			return nil
		}
		err = bound(x.router.Len(), vh.registry.ceilings.Bindings, "bind to %s: binding limit", exchangeLabel(vh.guard.name, x.name))
		if err == nil {
			err = vh.memory.takeLocked(bindingFootprint(b.RoutingKey, b.Args), "a binding of "+exchangeLabel(vh.guard.name, x.name), false)
		}
		if err != nil {
			x.router.Unbind(d, b.RoutingKey, b.Args)
			return err
		}
		made := exchange.Binding[destination]{Destination: d, Key: b.RoutingKey, Args: b.Args}
		vh.changedLocked()
		x.boundLocked(made)
		if !x.declared.Durable || !d.durable() {
			return nil
		}
		return x.saveBindingLocked(made)
	})
}

// saveBindingLocked returns when a new binding is on disk. Others see it before that, since
// nothing durable depends on it. If it cannot be saved it is removed again, unless it was
// already removed with one of its ends. Called with the key claimed.
func (x *Exchange) saveBindingLocked(b exchange.Binding[destination]) error {
	vh := x.vh
	saved := x.bindingDefinition(b)
	err := vh.guard.saveLocked(saved.Key(), saved, nil)
	if err == nil || vh.guard.deleted {
		return err
	}
	if args, removed := x.router.Unbind(b.Destination, b.Key, b.Args); removed {
		vh.changedLocked()
		x.unboundLocked(exchange.Binding[destination]{Destination: b.Destination, Key: b.Key, Args: args})
	}
	return err
}

// Unbind removes the binding. If it or one of its ends does not exist, nothing is done, as in
// RabbitMQ. Errors: 403 on the default exchange, 405 on another connection's exclusive queue.
func (vh *VHost) Unbind(owner Owner, b Binding) error {
	return vh.mutateAndSweep(func() error {
		x, d, err := vh.endsLocked(b)
		if err != nil || x == nil || d == (destination{}) {
			return err
		}
		args, removed := x.router.Unbind(d, b.RoutingKey, b.Args)
		if !removed {
			return nil
		}
		if err := d.checkOwner(owner); err != nil {
			x.router.Bind(d, b.RoutingKey, args)
			return err
		}
		vh.changedLocked()
		x.unboundLocked(exchange.Binding[destination]{Destination: d, Key: b.RoutingKey, Args: args})
		x.autoDeleteLocked()
		return nil
	})
}

// endsLocked returns the ends of a binding, zero for one that does not exist. The error is 403 where
// one of them is the default exchange.
func (vh *VHost) endsLocked(b Binding) (x *Exchange, d destination, err error) {
	err = CheckDefaultExchange(b.Source)
	if err == nil && b.ToExchange {
		err = CheckDefaultExchange(b.Destination)
	}
	if err != nil {
		return nil, destination{}, err
	}
	if b.ToExchange {
		d.exchange = vh.Exchanges.exchanges[b.Destination]
	} else {
		d.queue = vh.Queues.queues[b.Destination]
	}
	return vh.Exchanges.exchanges[b.Source], d, nil
}

// bothEndsLocked is endsLocked with 404 where one is missing, and 405 on another connection's
// exclusive queue.
func (vh *VHost) bothEndsLocked(owner Owner, b Binding) (*Exchange, destination, error) {
	x, d, err := vh.endsLocked(b)
	switch {
	case err != nil:
	case d == destination{} && b.ToExchange:
		err = noExchange(vh.guard.name, b.Destination)
	case d == destination{}:
		err = delivery.NoQueue(vh.guard.name, b.Destination)
	default:
		if err = d.checkOwner(owner); err == nil && x == nil {
			err = noExchange(vh.guard.name, b.Source)
		}
	}
	return x, d, err
}

// checkOwner refuses another connection's exclusive queue with 405.
func (d destination) checkOwner(owner Owner) error {
	if d.queue == nil {
		return nil
	}
	return d.queue.checkOwner(owner)
}

// sources are the exchanges that something is bound to, with the number of bindings. Guarded by the
// virtual host's mu.
type sources map[*Exchange]int

func (d destination) sourcesLocked() *sources {
	if d.queue != nil {
		return &d.queue.sources
	}
	return &d.exchange.sources
}

// boundLocked notes a new binding from x. unboundLocked notes that one was removed, in the
// definitions, too.
func (x *Exchange) boundLocked(b exchange.Binding[destination]) {
	x.hadBound = true
	x.reboundLocked(b.Destination)
	s := b.Destination.sourcesLocked()
	if *s == nil {
		*s = sources{}
	}
	(*s)[x]++
}

func (x *Exchange) unboundLocked(b exchange.Binding[destination]) {
	vh := x.vh
	vh.memory.giveLocked(bindingFootprint(b.Key, b.Args))
	x.reboundLocked(b.Destination)
	s := *b.Destination.sourcesLocked()
	if s[x]--; s[x] <= 0 {
		delete(s, x)
	}
	if x.declared.Durable && b.Destination.durable() {
		vh.guard.noteLocked(x.bindingDefinition(b).Key(), nil)
	}
}
