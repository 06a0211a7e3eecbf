package manage

import (
	"strings"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
)

// Declarer executes the methods of AMQP that declare, bind, purge and delete, for one client. Its methods are for one goroutine.
type Declarer struct {
	Rights *broker.Rights // what the user may do in the virtual host
	VHost  *broker.VHost
	Owner  broker.Owner // of exclusive queues
}

// Execute executes a method. last is the queue that was declared last on the channel, which
// an empty queue name refers to; a declaration sets it. The answer is nil if the client asked
// for none. known is false for a method that is not among those of the package.
func (c *Declarer) Execute(m amqp.Method, last *string) (answer amqp.Method, known bool, err error) {
	var noWait bool
	switch m := m.(type) {
	case *amqp.ExchangeDeclare:
		noWait = m.NoWait
		answer, err = c.exchangeDeclare(m)
	case *amqp.ExchangeDelete:
		noWait = m.NoWait
		answer, err = &amqp.ExchangeDeleteOk{}, c.Rights.DeleteExchange(c.VHost, lineEnds.Replace(m.Exchange), m.IfUnused)
	case *amqp.ExchangeBind:
		noWait = m.NoWait
		answer, err = &amqp.ExchangeBindOk{}, c.Rights.Bind(c.VHost, c.Owner, exchangeBinding(&m.ExchangeBinding))
	case *amqp.ExchangeUnbind:
		noWait = m.NoWait
		answer, err = &amqp.ExchangeUnbindOk{}, c.Rights.Unbind(c.VHost, c.Owner, exchangeBinding(&m.ExchangeBinding))
	case *amqp.QueueDeclare:
		noWait = m.NoWait
		answer, err = c.queueDeclare(m, last)
	case *amqp.QueueBind:
		noWait = m.NoWait
		var b broker.Binding
		if b, err = c.binding(m.Queue, *last, m.Exchange, m.RoutingKey, m.Arguments); err == nil {
			err = c.Rights.Bind(c.VHost, c.Owner, b)
		}
		answer = &amqp.QueueBindOk{}
	case *amqp.QueueUnbind:
		var b broker.Binding
		if b, err = c.binding(m.Queue, *last, m.Exchange, m.RoutingKey, m.Arguments); err == nil {
			err = c.Rights.Unbind(c.VHost, c.Owner, b)
		}
		answer = &amqp.QueueUnbindOk{}
	case *amqp.QueuePurge:
		noWait = m.NoWait
		var q *broker.Queue
		if q, err = c.QueueToRead(m.Queue, *last); err == nil {
			answer = &amqp.QueuePurgeOk{MessageCount: uint32(q.Messages.Purge())}
		}
	case *amqp.QueueDelete:
		noWait = m.NoWait
		var name string
		var n int
		if name, err = c.queueName(m.Queue, *last); err == nil {
			n, err = c.Rights.DeleteQueue(c.VHost, c.Owner, lineEnds.Replace(name), broker.QueueDeletion{IfUnused: m.IfUnused, IfEmpty: m.IfEmpty})
		}
		answer = &amqp.QueueDeleteOk{MessageCount: uint32(n)}
	default:
		return nil, false, nil
	}
	if err != nil || noWait {
		return nil, true, err
	}
	return answer, true, nil
}

// QueueToRead returns a queue that the user may read. last is as in Execute.
func (c *Declarer) QueueToRead(name, last string) (*broker.Queue, error) {
	name, err := c.queueName(name, last)
	if err == nil {
		err = c.Rights.Queue(access.Read, name)
	}
	if err != nil {
		return nil, err
	}
	return c.VHost.Queues.GetFor(c.Owner, name)
}

// queueName returns the name of a queue. An empty name means the queue that was declared
// last on the channel.
func (c *Declarer) queueName(name, last string) (string, error) {
	if name != "" {
		return c.VHost.Queues.NameOf(name), nil
	}
	if last == "" {
		return "", amqp.NewException(amqp.NotFound, 0, 0, "no previously declared queue")
	}
	return last, nil
}

// lineEnds are removed from names when something is declared, deleted, bound or unbound,
// and nowhere else (as in RabbitMQ).
var lineEnds = strings.NewReplacer("\r", "", "\n", "")

func (c *Declarer) queueDeclare(m *amqp.QueueDeclare, last *string) (amqp.Method, error) {
	m.Queue = lineEnds.Replace(m.Queue)
	if broker.IsReply(m.Queue) {
		return c.declareReply(m, last)
	}
	q, err := c.declared(m, *last)
	if err != nil {
		return nil, err
	}
	*last = q.Name
	ready, _, consumers := q.Messages.Counts()
	name := m.Queue // as it was sent: a client may wait for the answer about that name, also where a sub-queue has another
	if name == "" {
		name = q.Name
	}
	return &amqp.QueueDeclareOk{Queue: name, MessageCount: uint32(ready), ConsumerCount: uint32(consumers)}, nil
}

// declareReply answers a declaration of a name that is reserved for replies, passive or
// not: such a queue always has one consumer and no messages.
func (c *Declarer) declareReply(m *amqp.QueueDeclare, last *string) (amqp.Method, error) {
	if err := c.VHost.CheckReply(m.Queue); err != nil {
		return nil, err
	}
	*last = m.Queue
	return &amqp.QueueDeclareOk{Queue: m.Queue, ConsumerCount: 1}, nil
}

func (c *Declarer) declared(m *amqp.QueueDeclare, last string) (*broker.Queue, error) {
	if !m.Passive {
		return c.Rights.DeclareQueue(c.VHost, c.Owner, c.VHost.Queues.NameOf(m.Queue), broker.QueueDeclare{
			Durable: m.Durable, Exclusive: m.Exclusive, AutoDelete: m.AutoDelete, Args: m.Arguments,
		})
	}
	name, err := c.queueName(m.Queue, last)
	if err == nil {
		err = c.Rights.CheckQueue(name)
	}
	if err != nil {
		return nil, err
	}
	q, err := c.VHost.Queues.GetFor(c.Owner, name)
	if err == nil {
		q.Messages.Idle.Renew()
	}
	return q, err
}

// binding returns a queue's binding. If both queue and key are empty, the key is the name
// of the queue that was declared last (AMQP 0-9-1 queue.bind).
func (c *Declarer) binding(queue, last, exchange, key string, args amqp.Table) (broker.Binding, error) {
	name, err := c.queueName(queue, last)
	if queue == "" && key == "" {
		key = name
	}
	return broker.Binding{Source: lineEnds.Replace(exchange), Destination: lineEnds.Replace(name), RoutingKey: key, Args: args}, err
}

func (c *Declarer) exchangeDeclare(m *amqp.ExchangeDeclare) (amqp.Method, error) {
	m.Exchange = lineEnds.Replace(m.Exchange)
	var err error
	if !m.Passive {
		err = c.Rights.DeclareExchange(c.VHost, m.Exchange, broker.ExchangeDeclare{
			Kind: m.Type, Durable: m.Durable, AutoDelete: m.AutoDelete, Internal: m.Internal, Args: m.Arguments,
		})
	} else if err = c.Rights.CheckExchange(m.Exchange); err == nil {
		err = c.VHost.Exchanges.Check(m.Exchange)
	}
	return &amqp.ExchangeDeclareOk{}, err
}

func exchangeBinding(m *amqp.ExchangeBinding) broker.Binding {
	return broker.Binding{
		Source: lineEnds.Replace(m.Source), Destination: lineEnds.Replace(m.Destination), RoutingKey: m.RoutingKey, ToExchange: true, Args: m.Arguments,
	}
}
