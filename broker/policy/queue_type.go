package policy

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// QueueType is a type that x-queue-type names. Here queues of both types are the same,
// on one node. They differ in the arguments they take and in what RabbitMQ promises for
// one and not the other (RabbitMQ: Quorum Queues, Feature comparison).
type QueueType uint8

const (
	// Classic is the default.
	Classic QueueType = iota
	// Quorum queues are durable, count deliveries and limit them.
	Quorum
)

// String is the type's name in x-queue-type.
func (t QueueType) String() string { return [...]string{"classic", "quorum"}[t] }

// module is the type's name in RabbitMQ's error texts.
func (t QueueType) module() string { return "rabbit_" + t.String() + "_queue" }

// defaultDeliveryLimit is the limit of RabbitMQ 4.0's quorum queues; x-delivery-limit
// -1 means no limit.
const defaultDeliveryLimit = 20

// Arguments of queue.declare: those of both types, of one type, and of streams alone. An
// argument that is in no list is accepted, as in RabbitMQ.
var (
	sharedArgs = []string{
		"x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length", "x-max-length-bytes",
		"x-overflow", "x-single-active-consumer", "x-queue-type", "x-consumer-timeout", "x-lock-duration",
		"x-dead-letter-queue", DeadLetterExpiredArg, "x-auto-delete-on-idle", "x-max-delivery-count", "x-ttl-precedence", "x-delivery-deadline", "x-remaining-expiration",
	}
	typeArgs = [...][]string{
		Classic: {"x-max-priority", "x-queue-mode", "x-queue-version", "x-queue-master-locator"},
		Quorum: {
			"x-dead-letter-strategy", "x-max-in-memory-length", "x-max-in-memory-bytes", "x-quorum-initial-group-size",
			"x-delivery-limit", "x-queue-leader-locator", retryTypeArg, retryMinArg, retryMaxArg,
		},
	}
	streamArgs = []string{"x-max-age", "x-stream-max-segment-size-bytes", "x-initial-cluster-size"}
)

// ComparedArgs are the arguments a redeclare must repeat.
func (t QueueType) ComparedArgs() []string { return slices.Concat(sharedArgs, typeArgs[t]) }

// queueType reads x-queue-type. A stream is not a queue that messages leave, and is
// refused as RabbitMQ refuses an unknown type.
func (p *argParser) queueType() QueueType {
	t, ok := p.text("x-queue-type")
	switch {
	case !ok || t == "classic":
		return Classic
	case t == "quorum":
		return Quorum
	}
	p.fail("x-queue-type", `"unsupported queue type '`+t+`'"`)
	return Classic
}

// refuseForeign refuses arguments that belong to another type.
func (p *argParser) refuseForeign(t QueueType) {
	foreign := slices.Concat(streamArgs, typeArgs[Quorum], typeArgs[Classic])
	for _, arg := range foreign {
		if _, given := p.args[arg]; given && !slices.Contains(t.ComparedArgs(), arg) {
			p.foreign(arg, t)
		}
	}
}

func (p *argParser) foreign(arg string, t QueueType) {
	if p.err == nil {
		p.err = amqp.NewException(amqp.PreconditionFailed, 0, 0, "invalid arg '%s' for %s of queue type %s", arg, p.label, t.module())
	}
}

// CheckProperties refuses properties that a quorum queue cannot have.
func (t QueueType) CheckProperties(label string, durable, exclusive, autoDelete bool) error {
	if t != Quorum {
		return nil
	}
	for _, p := range []struct {
		wrong bool
		name  string
	}{{autoDelete, "auto-delete"}, {exclusive, "exclusive-owner"}, {!durable, "non-durable"}} {
		if p.wrong {
			return amqp.NewException(amqp.PreconditionFailed, 0, 0, "invalid property '%s' for %s", p.name, label)
		}
	}
	return nil
}

// Overflow is the mode of that name. For a quorum queue reject-publish-dlx means the
// default, as in RabbitMQ.
func (t QueueType) Overflow(mode string) queue.Overflow {
	switch {
	case mode == "reject-publish":
		return queue.RejectPublish
	case mode == "reject-publish-dlx" && t == Classic:
		return queue.RejectPublishDLX
	}
	return queue.DropHead
}

// CheckName refuses a name that does not fit into AMQP's short string, or is not UTF-8. No client of AMQP 0-9-1 can send one,
// but it may come from an API.
func CheckName(what, name string) error {
	switch {
	case len(name) > 255:
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "the name of %s has %d octets, at most 255 are allowed", what, len(name))
	case !utf8.ValidString(name):
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "the name of %s, %q, is not UTF-8", what, name)
	}
	return nil
}

// CheckNamed refuses a quorum queue without a name, and a name that is too long.
func CheckNamed(name string, args amqp.Table) error {
	if err := CheckName("a queue", name); err != nil {
		return err
	}
	if t, _ := args["x-queue-type"].(string); name == "" && t == Quorum.String() {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "Cannot declare a server-named queue for type %s", Quorum.module())
	}
	return nil
}

// ignored checks the arguments that RabbitMQ checks and that have no effect on a
// queue on one node.
func (p *argParser) ignored(t QueueType) {
	if t == Classic {
		p.choice("x-queue-mode", queueMode, `"unsupported queue mode '%s'"`)
		if v := p.integer("x-queue-version", 1, 0, 1<<62); v != 1 && v != 2 {
			p.fail("x-queue-version", fmt.Sprintf(`"unsupported queue version '%d'"`, v))
		}
		p.text("x-queue-master-locator")
		return
	}
	p.integer("x-max-in-memory-length", 0, 0, 1<<62)
	p.integer("x-max-in-memory-bytes", 0, 0, 1<<62)
	p.integer("x-quorum-initial-group-size", 1, 1, 1<<62)
	p.choice("x-queue-leader-locator", leaderLocator, "invalid_queue_locator_arg")
}

var (
	queueMode     = oneOf("default", "lazy")
	leaderLocator = oneOf("client-local", "balanced", "random", "least-leaders")
	strategyName  = oneOf("at-most-once", "at-least-once")
)

// bool reads an argument that is true or false.
func (p *argParser) bool(name string) bool {
	b, _ := typed[bool](p, name)
	return b
}

// deliveryLimit reads x-delivery-limit; <0 is none (RabbitMQ 4.0: -1).
func (p *argParser) deliveryLimit() int64 {
	if _, ok := p.args["x-delivery-limit"]; !ok {
		return defaultDeliveryLimit
	}
	return max(p.anyInteger("x-delivery-limit"), -1)
}

// TakePriorities keeps the priorities in the arguments of a restored quorum queue: they would be
// refused now, but its messages were saved with them.
func (s *Settings) TakePriorities(args amqp.Table) {
	if _, ok := args["x-max-priority"]; ok && s.Type == Quorum {
		p := argParser{args: args}
		s.Core.Priorities, s.Core.TwoLevels = p.priorities(), false
	}
}
