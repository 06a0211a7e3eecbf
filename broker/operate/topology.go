package operate

import (
	"context"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
)

// ExchangeName names an exchange; "" is the default one.
type ExchangeName struct{ VHost, Name string }

// DeclareQueue makes a queue, or finds one that was declared as d says. The errors are the broker's: 406 for a queue with other properties.
func (o Topology) DeclareQueue(_ context.Context, a Actor, at QueueName, d broker.QueueDeclare) (created bool, err error) {
	vh, err := o.vhost(&a, DeclareQueue, at.VHost)
	if err == nil {
		name := vh.Queues.NameOf(at.Name)
		_, missing := vh.Queues.Get(name)
		created = missing != nil
		_, err = o.rights(&a, vh).DeclareQueue(vh, nobody{}, name, d)
	}
	o.Record(a, DeclareQueue, at, err)
	return created && err == nil, err
}

// QueueDeletion has the conditions under which a queue is not deleted.
type QueueDeletion = broker.QueueDeletion

// DeleteQueue deletes a queue with its messages, and returns how many were ready. Errors: ErrNotFound, or the broker's: 406 for one that is used,
// is not empty, or has more messages than d allows.
func (o Topology) DeleteQueue(_ context.Context, a Actor, at QueueName, d QueueDeletion) (messages int, err error) {
	q, err := o.queue(&a, DeleteQueue, at)
	if err == nil && d.QueueID != 0 && d.QueueID != q.ID() {
		err = ErrNotFound
	}
	var vh *broker.VHost
	if err == nil {
		vh, err = o.Broker.VHostOf(q)
	}
	if err == nil {
		messages, err = o.rights(&a, vh).DeleteQueue(vh, nobody{}, q.Name(), d)
	}
	o.Record(a, DeleteQueue, at, err, zap.Int("messages", messages))
	return messages, err
}

// PurgeSeen deletes the ready messages of a queue that somebody has seen, and nothing that arrived later. Error:
// *deadletters.Unconfirmed among others.
func (o Topology) PurgeSeen(ctx context.Context, a Actor, at QueueName, c deadletters.Confirmation) (deleted int, err error) {
	q, err := o.queue(&a, PurgeQueue, at)
	if err == nil {
		q, err = q.VHost().Queues.GetFor(nobody{}, q.Name())
	}
	if err == nil {
		deleted, err = deadletters.Purge(ctx, o.Broker, q, "", c, func(n int) { report(ctx, n, c.Messages) })
	}
	return deleted, o.purged(ctx, &a, PurgeQueue, at, deleted, err)
}

// ListExchanges lists the exchanges of the virtual hosts that the actor may look into, by virtual host and name.
func (o Topology) ListExchanges(_ context.Context, a Actor) (all []broker.ExchangeInfo, err error) {
	if err := o.permit(&a, ListExchanges, ""); err != nil {
		return nil, err
	}
	for _, vh := range o.VHosts(a) {
		all = append(all, vh.Exchanges.List()...)
	}
	return all, nil
}

// Exchange returns one exchange. Error: ErrNotFound among others.
func (o Topology) Exchange(_ context.Context, a Actor, at ExchangeName) (broker.ExchangeInfo, error) {
	vh, err := o.vhost(&a, ListExchanges, at.VHost)
	if err != nil {
		return broker.ExchangeInfo{}, err
	}
	x, err := vh.Exchanges.Get(at.Name)
	if err != nil {
		return x, ErrNotFound
	}
	return x, nil
}

// DeclareExchange makes an exchange, or finds one that was declared as d says.
func (o Topology) DeclareExchange(_ context.Context, a Actor, at ExchangeName, d broker.ExchangeDeclare) (created bool, err error) {
	vh, err := o.vhost(&a, DeclareExchange, at.VHost)
	if err == nil {
		_, missing := vh.Exchanges.Get(at.Name)
		created = missing != nil
		err = o.rights(&a, vh).DeclareExchange(vh, at.Name, d)
	}
	o.Record(a, DeclareExchange, QueueName{VHost: at.VHost}, err, zap.String("exchange", at.Name))
	return created && err == nil, err
}

// DeleteExchange deletes an exchange with its bindings. Error: ErrNotFound among others.
func (o Topology) DeleteExchange(_ context.Context, a Actor, at ExchangeName, ifUnused bool) error {
	vh, err := o.vhost(&a, DeleteExchange, at.VHost)
	if err == nil {
		if _, missing := vh.Exchanges.Get(at.Name); missing != nil {
			err = ErrNotFound
		} else {
			err = o.rights(&a, vh).DeleteExchange(vh, at.Name, ifUnused)
		}
	}
	o.Record(a, DeleteExchange, QueueName{VHost: at.VHost}, err, zap.String("exchange", at.Name))
	return err
}

// ListBindings lists the bindings in a virtual host.
func (o Topology) ListBindings(_ context.Context, a Actor, vhost string) ([]broker.Binding, error) {
	vh, err := o.vhost(&a, ListBindings, vhost)
	if err != nil {
		return nil, err
	}
	return vh.Bindings(), nil
}

// Bind binds a queue or an exchange to an exchange.
func (o Topology) Bind(_ context.Context, a Actor, vhost string, b broker.Binding) error {
	return o.changeBinding(&a, Bind, vhost, b, (*broker.Rights).Bind)
}

// Unbind removes a binding.
func (o Topology) Unbind(_ context.Context, a Actor, vhost string, b broker.Binding) error {
	return o.changeBinding(&a, Unbind, vhost, b, (*broker.Rights).Unbind)
}

func (o Topology) changeBinding(a *Actor, op Operation, vhost string, b broker.Binding, change func(*broker.Rights, *broker.VHost, broker.Owner, broker.Binding) error) error {
	vh, err := o.vhost(a, op, vhost)
	if err == nil {
		err = change(o.rights(a, vh), vh, nobody{}, b)
	}
	o.Record(*a, op, QueueName{VHost: vhost}, err,
		zap.String("source", b.Source), zap.String("destination", b.Destination), zap.Bool("to_exchange", b.ToExchange), zap.String("routing_key", b.RoutingKey))
	return err
}

// rights are what the actor may do in a virtual host, as over AMQP.
func (o *Access) rights(a *Actor, vh *broker.VHost) *broker.Rights {
	return o.Broker.RightsOf(a.Name, vh.Name())
}
