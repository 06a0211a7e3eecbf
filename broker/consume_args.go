package broker

import "curfew/broker/amqp"

// parseConsume reads the arguments of basic.consume (RabbitMQ: Consumer
// Priorities). Errors are RabbitMQ's 406.
func (q *Queue) parseConsume(c *Consumer) error {
	p := argParser{vh: q.vh, label: q.Label(), args: c.Args}
	c.Priority = p.anyInteger("x-priority")
	c.TimeoutMillis = p.integer("x-consumer-timeout", 0, 1, MaxTTLMillis)
	foreign := "x-stream-offset"
	if q.asked.kind == Classic {
		p.bool("x-cancel-on-ha-failover")
	} else if _, given := c.Args["x-cancel-on-ha-failover"]; given {
		foreign = "x-cancel-on-ha-failover"
	}
	if _, given := c.Args[foreign]; given {
		p.foreign(foreign, q.asked.kind)
	}
	return p.err
}

// anyInteger reads an argument of any AMQP integer type; 0 without it.
func (p *argParser) anyInteger(name string) int64 {
	v, ok := p.args[name]
	n, isInt := amqp.Integer(v)
	if ok && !isInt {
		p.fail(name, `"expected integer, got `+amqp.TypeName(v)+`"`)
	}
	return n
}
