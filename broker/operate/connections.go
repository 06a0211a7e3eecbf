package operate

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"curfew/broker/server"
)

// ListConnections lists the open AMQP connections that the actor may see: the user's own, or all for those who monitor.
func (o *Operations) ListConnections(_ context.Context, a Actor) ([]server.ConnectionInfo, error) {
	if err := o.permit(&a, ListConnections, ""); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(o.Server.List(), func(c server.ConnectionInfo) bool { return !a.Has(Monitor) && c.User != a.Name }), nil
}

// ListConsumers lists the consumers in a virtual host, "" for all that the actor may look into, on a queue or on any ("").
func (o *Operations) ListConsumers(_ context.Context, a Actor, vhost, queue string) (list []server.ConsumerInfo, err error) {
	if err := o.permit(&a, ListQueues, vhost); err != nil {
		return nil, err
	}
	seen := o.Visible(a)
	for _, c := range o.Server.List() {
		if !seen[c.VHost] || vhost != "" && vhost != c.VHost {
			continue
		}
		for _, ch := range c.Channels {
			for _, one := range ch.Consumers {
				if queue == "" || one.Queue.Name == queue {
					list = append(list, one)
				}
			}
		}
	}
	return list, nil
}

// Connection returns one connection. Errors: ErrNotFound, or ErrNotYours.
func (o *Operations) Connection(_ context.Context, a Actor, name string) (*server.ConnectionInfo, error) {
	if err := o.permit(&a, ListConnections, ""); err != nil {
		return nil, err
	}
	for _, c := range o.Server.List() {
		if c.Name != name {
			continue
		}
		if !a.Has(Monitor) && c.User != a.Name {
			return nil, ErrNotYours
		}
		return &c, nil
	}
	return nil, ErrNotFound
}

// CloseConnectionsOf closes all connections of a user: the actor's own, or any user's for an administrator.
func (o *Operations) CloseConnectionsOf(_ context.Context, a Actor, user, reason string) error {
	err := o.permit(&a, CloseConnections, "")
	if err == nil && user != a.Name && !a.Has(Administrator) {
		err = ErrNotYours
	}
	n := 0
	if err == nil {
		n = o.Server.CloseConnections(reason, func(_, of, _ string) bool { return of == user })
	}
	o.Record(a, CloseConnections, QueueName{}, err, zap.String("of", user), zap.Int("connections", n), zap.String("reason", reason))
	return err
}
