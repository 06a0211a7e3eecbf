package policy

import "curfew/broker/amqp"

// ParseConsumer reads the arguments of basic.consume (RabbitMQ: Consumer
// Priorities). Errors are RabbitMQ's 406.
func ParseConsumer(kind QueueType, label string, args amqp.Table) (priority, timeoutMillis int64, err error) {
	p := argParser{label: label, args: args}
	priority = p.anyInteger("x-priority")
	timeoutMillis = p.integer("x-consumer-timeout", 0, 1, MaxTTLMillis)
	foreign := "x-stream-offset"
	if kind == Classic {
		p.bool("x-cancel-on-ha-failover")
	} else if _, given := args["x-cancel-on-ha-failover"]; given {
		foreign = "x-cancel-on-ha-failover"
	}
	if _, given := args[foreign]; given {
		p.foreign(foreign, kind)
	}
	return priority, timeoutMillis, p.err
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
