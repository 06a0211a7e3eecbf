package broker

import (
	"strings"

	"curfew/broker/access"
	"curfew/broker/internal/topology"
)

// The methods of VHost that change or read the topology, with RabbitMQ's check of permissions
// before each (RabbitMQ: Access Control, "How Permissions Work").

// DeclareQueue needs configure on the queue; making one with a dead-letter exchange also needs
// read on the queue and write on that exchange.
func (r *Rights) DeclareQueue(vh *VHost, owner Owner, name string, d QueueDeclare) (*Queue, error) {
	return vh.Queues.DeclareFor(r.mayDeclare, owner, name, d)
}

// mayDeclare is the topology.Permit of the user.
func (r *Rights) mayDeclare(name string, making *QueueDeclare) error {
	if making == nil {
		return r.Queue(access.Configure, name)
	}
	dlx, dies := making.Args["x-dead-letter-exchange"].(string)
	if !dies {
		return nil
	}
	if err := r.Queue(access.Read, name); err != nil {
		return err
	}
	return r.Exchange(access.Write, dlx)
}

// CheckQueue is for the passive declare: any permission on the name is enough. It keeps users
// from finding out names by trying (RabbitMQ since 4.2.7; before, everybody may).
func (r *Rights) CheckQueue(name string) error {
	return anyOf(func(op access.Operation) error { return r.Queue(op, name) })
}

// CheckExchange is for the passive declare of an exchange.
func (r *Rights) CheckExchange(name string) error {
	if err := topology.CheckDefaultExchange(name); err != nil {
		return err
	}
	return anyOf(func(op access.Operation) error { return r.Exchange(op, name) })
}

func anyOf(check func(access.Operation) error) (err error) {
	for _, op := range []access.Operation{access.Configure, access.Write, access.Read} {
		if err = check(op); err == nil {
			return nil
		}
	}
	return err
}

// DeleteQueue needs configure on the queue.
func (r *Rights) DeleteQueue(vh *VHost, owner Owner, name string, d QueueDeletion) (messages int, err error) {
	if err := r.Queue(access.Configure, name); err != nil {
		return 0, err
	}
	return vh.Queues.Delete(owner, name, d)
}

// DeclareExchange needs configure on the exchange; making one with an alternate exchange also
// needs read on it and write on the alternate.
func (r *Rights) DeclareExchange(vh *VHost, name string, d ExchangeDeclare) error {
	if _, err := topology.ReadExchange(name, d); err != nil {
		return err
	}
	if err := r.Exchange(access.Configure, name); err != nil {
		return err
	}
	alternate, ok := d.Args["alternate-exchange"].(string)
	if ok && !strings.HasPrefix(name, "amq.") && vh.Exchanges.Check(name) != nil {
		if err := r.Exchange(access.Read, name); err != nil {
			return err
		}
		if err := r.Exchange(access.Write, alternate); err != nil {
			return err
		}
	}
	return vh.Exchanges.Declare(name, d)
}

// DeleteExchange needs configure on the exchange.
func (r *Rights) DeleteExchange(vh *VHost, name string, ifUnused bool) error {
	if err := vh.Exchanges.CheckDeletable(name); err != nil {
		return err
	}
	if err := r.Exchange(access.Configure, name); err != nil {
		return err
	}
	return vh.Exchanges.Delete(name, ifUnused)
}

// Bind needs write on the destination, read on the source, and on a topic
// exchange read by the routing key. Nothing can be bound to a dead-letter sub-queue (403).
func (r *Rights) Bind(vh *VHost, owner Owner, b Binding) error {
	if err := r.mayBind(vh, &b); err != nil {
		return err
	}
	if q, err := vh.Queues.Get(b.Destination); err == nil && q.Arguments.Keeps && !b.ToExchange {
		return q.OnlyDeadLetters()
	}
	return vh.Bind(owner, b)
}

// Unbind needs what Bind does.
func (r *Rights) Unbind(vh *VHost, owner Owner, b Binding) error {
	if err := r.mayBind(vh, &b); err != nil {
		return err
	}
	return vh.Unbind(owner, b)
}

func (r *Rights) mayBind(vh *VHost, b *Binding) error {
	check := r.Queue
	if b.ToExchange {
		check = r.Exchange
	}
	if err := check(access.Write, b.Destination); err != nil {
		return err
	}
	if err := topology.CheckDefaultExchange(b.Source); err != nil {
		return err
	}
	if b.ToExchange && b.Destination == "" {
		return topology.CheckDefaultExchange(b.Destination)
	}
	if err := r.Exchange(access.Read, b.Source); err != nil {
		return err
	}
	return r.Topic(access.Read, vh, []byte(b.Source), []byte(b.RoutingKey))
}
