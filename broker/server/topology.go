package server

import (
	"strings"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
)

// queueToRead returns a queue that the user may read.
func (ch *channel) queueToRead(name string) (*broker.Queue, error) {
	name, err := ch.queueName(name)
	if err == nil {
		err = ch.conn.rights.Queue(access.Read, name)
	}
	if err != nil {
		return nil, err
	}
	return ch.conn.vhost.QueueFor(ch.conn, name)
}

// queueName returns the name of a queue. An empty name means the queue that was declared
// last on this channel.
func (ch *channel) queueName(name string) (string, error) {
	if name != "" {
		return ch.conn.vhost.QueueName(name), nil
	}
	if ch.queue == "" {
		return "", amqp.NewException(amqp.NotFound, 0, 0, "no previously declared queue")
	}
	return ch.queue, nil
}

// lineEnds are removed from names when something is declared, deleted, bound or unbound,
// and nowhere else (as in RabbitMQ).
var lineEnds = strings.NewReplacer("\r", "", "\n", "")

func (ch *channel) queueDeclare(m *amqp.QueueDeclare) error {
	m.Queue = lineEnds.Replace(m.Queue)
	if broker.IsReply(m.Queue) {
		return ch.declareReply(m)
	}
	q, err := ch.declared(m)
	if err != nil {
		return err
	}
	ch.queue = q.Name()
	ready, _, consumers := q.Counts()
	return ch.reply(m.NoWait, &amqp.QueueDeclareOk{Queue: q.Name(), MessageCount: uint32(ready), ConsumerCount: uint32(consumers)})
}

func (ch *channel) declared(m *amqp.QueueDeclare) (*broker.Queue, error) {
	if !m.Passive {
		return ch.conn.rights.DeclareQueue(ch.conn.vhost, ch.conn, ch.conn.vhost.QueueName(m.Queue), broker.QueueDeclare{
			Durable: m.Durable, Exclusive: m.Exclusive, AutoDelete: m.AutoDelete, Args: m.Arguments,
		})
	}
	name, err := ch.queueName(m.Queue)
	if err == nil {
		err = ch.conn.rights.CheckQueue(name)
	}
	if err != nil {
		return nil, err
	}
	q, err := ch.conn.vhost.QueueFor(ch.conn, name)
	if err == nil {
		q.Touch()
	}
	return q, err
}

func (ch *channel) queueBind(m *amqp.QueueBind) error {
	b, err := ch.binding(m.Queue, m.Exchange, m.RoutingKey, m.Arguments)
	if err == nil {
		err = ch.conn.rights.Bind(ch.conn.vhost, ch.conn, b)
	}
	if err != nil {
		return err
	}
	return ch.reply(m.NoWait, &amqp.QueueBindOk{})
}

func (ch *channel) queueUnbind(m *amqp.QueueUnbind) error {
	b, err := ch.binding(m.Queue, m.Exchange, m.RoutingKey, m.Arguments)
	if err == nil {
		err = ch.conn.rights.Unbind(ch.conn.vhost, ch.conn, b)
	}
	if err != nil {
		return err
	}
	return ch.reply(false, &amqp.QueueUnbindOk{})
}

// binding returns a queue's binding. If both queue and key are empty, the key is the name
// of the queue that was declared last (AMQP 0-9-1 queue.bind).
func (ch *channel) binding(queue, exchange, key string, args amqp.Table) (broker.Binding, error) {
	name, err := ch.queueName(queue)
	if queue == "" && key == "" {
		key = name
	}
	return broker.Binding{Source: lineEnds.Replace(exchange), Destination: lineEnds.Replace(name), RoutingKey: key, Args: args}, err
}

func (ch *channel) queuePurge(m *amqp.QueuePurge) error {
	q, err := ch.queueToRead(m.Queue)
	if err != nil {
		return err
	}
	return ch.reply(m.NoWait, &amqp.QueuePurgeOk{MessageCount: uint32(q.Purge())})
}

func (ch *channel) queueDelete(m *amqp.QueueDelete) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	n, err := ch.conn.rights.DeleteQueue(ch.conn.vhost, ch.conn, lineEnds.Replace(name), m.IfUnused, m.IfEmpty)
	if err != nil {
		return err
	}
	return ch.reply(m.NoWait, &amqp.QueueDeleteOk{MessageCount: uint32(n)})
}

func (ch *channel) exchangeDeclare(m *amqp.ExchangeDeclare) error {
	m.Exchange = lineEnds.Replace(m.Exchange)
	var err error
	vh, rights := ch.conn.vhost, ch.conn.rights
	if !m.Passive {
		err = rights.DeclareExchange(vh, m.Exchange, broker.ExchangeDeclare{
			Kind: m.Type, Durable: m.Durable, AutoDelete: m.AutoDelete, Internal: m.Internal, Args: m.Arguments,
		})
	} else if err = rights.CheckExchange(m.Exchange); err == nil {
		err = vh.CheckExchange(m.Exchange)
	}
	if err != nil {
		return err
	}
	return ch.reply(m.NoWait, &amqp.ExchangeDeclareOk{})
}

func (ch *channel) exchangeDelete(m *amqp.ExchangeDelete) error {
	if err := ch.conn.rights.DeleteExchange(ch.conn.vhost, lineEnds.Replace(m.Exchange), m.IfUnused); err != nil {
		return err
	}
	return ch.reply(m.NoWait, &amqp.ExchangeDeleteOk{})
}

func (ch *channel) exchangeBind(m *amqp.ExchangeBind) error {
	if err := ch.conn.rights.Bind(ch.conn.vhost, ch.conn, exchangeBinding(&m.ExchangeBinding)); err != nil {
		return err
	}
	return ch.reply(m.NoWait, &amqp.ExchangeBindOk{})
}

func (ch *channel) exchangeUnbind(m *amqp.ExchangeUnbind) error {
	if err := ch.conn.rights.Unbind(ch.conn.vhost, ch.conn, exchangeBinding(&m.ExchangeBinding)); err != nil {
		return err
	}
	return ch.reply(m.NoWait, &amqp.ExchangeUnbindOk{})
}

func exchangeBinding(m *amqp.ExchangeBinding) broker.Binding {
	return broker.Binding{
		Source: lineEnds.Replace(m.Source), Destination: lineEnds.Replace(m.Destination), RoutingKey: m.RoutingKey, ToExchange: true, Args: m.Arguments,
	}
}
