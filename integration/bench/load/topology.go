package load

import (
	"fmt"

	"curfew/broker/amqp"
)

// declareAhead is how many declares are sent before the first answer is awaited.
const declareAhead = 100

// declare declares the workload's queues, and its exchange with the bindings.
func (s *Spec) declare(c *Conn) error {
	if s.Exchange != "" {
		x := &amqp.ExchangeDeclare{Exchange: s.exchangeName(), Type: s.Exchange, Durable: s.durable()}
		if _, err := c.Call(channel, x, amqp.ExchangeDeclareOkID); err != nil {
			return err
		}
	}
	if err := s.eachQueue(c, amqp.QueueDeclareOkID, func(name string, _ int) amqp.Method {
		return &amqp.QueueDeclare{Queue: name, Durable: s.durable(), Arguments: s.arguments()}
	}); err != nil || s.Exchange == "" {
		return err
	}
	return s.eachQueue(c, amqp.QueueBindOkID, func(name string, i int) amqp.Method {
		return &amqp.QueueBind{Queue: name, Exchange: s.exchangeName(), RoutingKey: s.pattern(i)}
	})
}

// remove deletes what declare declared.
func (s *Spec) remove(c *Conn) error {
	err := s.eachQueue(c, amqp.QueueDeleteOkID, func(name string, _ int) amqp.Method {
		return &amqp.QueueDelete{Queue: name}
	})
	if err != nil || s.Exchange == "" {
		return err
	}
	_, err = c.Call(channel, &amqp.ExchangeDelete{Exchange: s.exchangeName()}, amqp.ExchangeDeleteOkID)
	return err
}

// removeLeftovers removes what a failed declare left behind, over a new connection, since
// the failure closed the channel. What cannot be removed stays: only the failure of declare
// is reported.
func (s *Spec) removeLeftovers() {
	if c, err := logIn(s.URL); err == nil {
		defer c.Close()
		s.remove(c) //nolint:errcheck // see above
	}
}

// eachQueue sends one method for each queue and reads the answers.
func (s *Spec) eachQueue(c *Conn, answer amqp.MethodID, method func(name string, i int) amqp.Method) error {
	for i, waiting := 0, 0; i < s.Queues || waiting > 0; {
		for ; i < s.Queues && waiting < declareAhead; i, waiting = i+1, waiting+1 {
			c.queueMethod(channel, method(s.QueueName(i), i))
		}
		if err := c.flush(); err != nil {
			return err
		}
		for ; waiting > 0; waiting-- {
			if _, err := c.await(answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// durable reports whether queues are durable: quorum queues always, others if messages are
// persistent.
func (s *Spec) durable() bool { return s.Persist || s.QueueType == "quorum" }

func (s *Spec) arguments() amqp.Table { return queueArguments(s.QueueType) }

// queueArguments returns the arguments that select a queue type; nil for the broker's
// default.
func queueArguments(queueType string) amqp.Table {
	switch queueType {
	case "classic":
		return amqp.Table{"x-queue-type": "classic"}
	case "classic-v2":
		return amqp.Table{"x-queue-type": "classic", "x-queue-version": int32(2)}
	case "quorum":
		return amqp.Table{"x-queue-type": "quorum"}
	}
	return nil
}

// consume subscribes the i-th consumer to its queues: every Consumers-th one, or one that
// it shares.
func (s *Spec) consume(c *Conn, i int) error {
	if s.Prefetch > 0 && s.Ack != "auto" {
		if _, err := c.Call(channel, &amqp.BasicQos{PrefetchCount: uint16(s.Prefetch)}, amqp.BasicQosOkID); err != nil {
			return err
		}
	}
	mine := portion(i, s.Consumers, s.Queues)
	for at, q := range mine {
		c.queueMethod(channel, &amqp.BasicConsume{
			Queue: s.QueueName(q), ConsumerTag: fmt.Sprint(q), NoAck: s.Ack == "auto", NoWait: at < len(mine)-1,
		})
	}
	return c.flush() // the answer arrives among the deliveries
}

// portion returns the indexes of the things that belong to the i-th of many users: every
// many-th thing, or one thing that it shares with others.
func portion(i, many, things int) (mine []int) {
	if many >= things {
		return []int{i % things}
	}
	for ; i < things; i += many {
		mine = append(mine, i)
	}
	return mine
}
