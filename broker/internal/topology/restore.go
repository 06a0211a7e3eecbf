package topology

import (
	"fmt"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/internal/catalog"
	"curfew/broker/store"
)

// RestoreExchange restores a saved exchange. One that every virtual host has stays as it is.
func (vh *VHost) RestoreExchange(x *catalog.Exchange) error {
	args, err := x.Args.Table()
	if err == nil {
		err = vh.Exchanges.Declare(x.Name, exchangeDeclared(x, args))
	}
	if err != nil && predeclared[x.Name] != "" {
		vh.registry.log.Warn("a saved change of an exchange that every virtual host has is left out",
			zap.String("vhost", vh.guard.name), zap.String("exchange", x.Name), zap.Error(err))
		vh.registry.env.Store.Define(store.Definition{Key: x.Key()})
		return nil
	}
	if err != nil {
		return fmt.Errorf("exchange %q: %w", x.Name, err)
	}
	return nil
}

func exchangeDeclared(x *catalog.Exchange, args amqp.Table) ExchangeDeclare {
	return ExchangeDeclare{Kind: x.Type, Durable: !x.Transient, AutoDelete: x.AutoDelete, Internal: x.Internal, Args: args}
}

// Restore restores a saved queue without its messages. A queue that an older version
// accepted is always restored; arguments that this version would refuse are ignored.
func (t *Queues) Restore(x *catalog.Queue) error {
	args, err := x.Args.Table()
	if err != nil {
		return err
	}
	d := queueDeclared(x, args)
	set, refused := t.settingsOf(x.Name, d)
	if refused != nil {
		t.vh.registry.log.Warn("a saved queue would be refused now; it is restored without its invalid arguments; delete it and declare it again",
			zap.String("vhost", x.VHost), zap.String("queue", x.Name), zap.Error(refused))
	}
	set.TakePriorities(args)
	var owner Owner
	if x.Exclusive {
		owner = otherConnection{}
	}
	q, err := t.enterQueue(x.ID, owner, x.Name, d, set)
	if err == nil && x.Consumed {
		q.marks.Or(consumed)
	}
	if err == nil && x.Recovered {
		q.Recovered = true
		t.vh.registry.Adopted.Add(1)
	}
	return err
}

func queueDeclared(x *catalog.Queue, args amqp.Table) QueueDeclare {
	return QueueDeclare{Durable: !x.Transient, Exclusive: x.Exclusive, AutoDelete: x.AutoDelete, Args: args}
}

// otherConnection owns the exclusive queues in the copy of a broker.
type otherConnection struct{}

// RestoreBinding restores a saved binding. Error: 404 if one of its ends was deleted during an import.
func (vh *VHost) RestoreBinding(x *catalog.Binding) error {
	args, err := x.Args.Table()
	if err != nil {
		return err
	}
	return vh.Bind(nil, bindingOf(x, args))
}

func bindingOf(b *catalog.Binding, args amqp.Table) Binding {
	return Binding{Source: b.Source, Destination: b.Destination, ToExchange: b.ToExchange, RoutingKey: b.RoutingKey, Args: args}
}
