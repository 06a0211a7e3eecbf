package delay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/monitor/rabbitmq/cluster"
)

// missingFor is how long it is told that the binding was missing.
const missingFor = time.Hour

// arguments are those of the binding between the exchange and the queue: a message with any of these headers, whatever their value, waits.
var arguments = amqp091.Table{"x-match": "any-with-x", "x-delay": nil, "x-delay-until": nil, "x-cancel": nil}

// ownType is the exchange type of deploy/rabbitmq/delayed: it leads to the queue without a binding. Where the management API does not say so, what it answers
// begins with ownAnswer.
const (
	ownType   = "x-delayed-message"
	ownAnswer = "curfew_delayed"
)

// Nowhere is the name of the Trouble that the exchange is missing which the dead letters of the queue go to: then messages stay for that.
const Nowhere = "exchange"

// binder makes the binding and looks what else is bound.
type binder struct {
	made     bool
	needless bool // as the exchange has said
}

// bind makes the binding if it is not there. RabbitMQ's answer does not tell whether it was: the lists before and after do.
func (b *binder) bind(s *session) {
	o := &s.k.o
	if o.Exchange == "" || b.needless {
		return
	}
	limited, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	kind, before, unknown := o.Bound(limited, o.Exchange)
	if kind == ownType && s.facts.Family == cluster.Family43 { // RabbitMQ would log that it refuses
		b.needless = true
		s.k.trouble("unbound", "", 0)
		return
	}
	err := s.control.QueueBind(o.Queue, "", o.Exchange, false, arguments)
	refused, _ := errors.AsType[*amqp091.Error](err)
	if refused != nil && refused.Code == amqp091.PreconditionFailed && strings.Contains(refused.Reason, ownAnswer) {
		b.needless = true
		s.k.trouble("unbound", "", 0)
		return
	}
	if refused != nil && refused.Code == amqp091.NotFound {
		s.k.trouble("unbound", fmt.Sprintf("there is no exchange %s, so nothing is bound to the queue. Declare it (curfew rabbitmq plan --delay), or name the right one with exchange in the file that CURFEW_WATCH names.", o.Exchange), 0)
		return
	}
	if err != nil {
		s.k.trouble("unbound", fmt.Sprintf("the queue cannot be bound to %s, so messages may go out at once: Curfew's user has to read the exchange and to write the queue. %s", o.Exchange, cluster.Words(err)), 0)
		return
	}
	s.k.trouble("unbound", "", 0)
	_, after, err := o.Bound(limited, o.Exchange)
	if unknown != nil || err != nil {
		s.k.log.Debug("what is bound cannot be listed", zap.Errors("why", []error{unknown, err}))
		b.made = true
		return
	}
	own := func(all []cluster.Bound) (keys []string) {
		for _, one := range all {
			if one.Queue && one.Destination == o.Queue {
				keys = append(keys, one.Key)
			}
		}
		return keys
	}
	if had := own(before); len(own(after)) > len(had) && (b.made || len(had) > 0) {
		s.k.trouble("binding", fmt.Sprintf("the binding from %s was missing at %s and was made again: until then messages with x-delay went out at once. An import of definitions cannot restore it.",
			o.Exchange, time.Now().UTC().Format(time.RFC3339)), missingFor)
	}
	b.made = true
	var others []string
	for _, one := range after {
		if !one.Queue || one.Destination != o.Queue {
			others = append(others, one.Destination)
		}
	}
	reason := ""
	if others = slices.Compact(others); len(others) > 0 {
		reason = fmt.Sprintf("%s is bound to %s itself and gets every message at once. Bind it to the exchange that dead letters of the queue go to.", strings.Join(others, ", "), o.Exchange)
	}
	s.k.trouble("bound", reason, 0)
}

// lookBehind notes whether the exchange is missing that messages which are due go to: RabbitMQ keeps them in the queue until it is there.
func (s *session) lookBehind() {
	o, reason := &s.k.o, ""
	own := o.Inventory().Queue(o.Queue)
	if own == nil {
		return
	}
	exchange, _ := own.DeadLetterExchange()
	if exchange == "" { // the default one, which is always there, or none
		s.k.trouble(Nowhere, "", 0)
		return
	}
	ch, err := s.conn.Channel() // which RabbitMQ closes if there is none
	if err != nil {
		return
	}
	defer ch.Close()
	err = ch.ExchangeDeclarePassive(exchange, "direct", true, false, false, false, nil) // of whatever type
	if missing, _ := errors.AsType[*amqp091.Error](err); missing != nil && missing.Code == amqp091.NotFound {
		reason = fmt.Sprintf("there is no exchange %s, where messages that are due go: they stay in the queue until it is there. Declare it, and bind the queues of the consumers to it (curfew rabbitmq plan --delay prints it).", exchange)
	}
	s.k.trouble(Nowhere, reason, 0)
}
