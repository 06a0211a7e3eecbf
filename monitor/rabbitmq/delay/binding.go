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

// ownType begins what the exchange type of deploy/rabbitmq/delayed answers: it leads to the queue without a binding.
const ownType = "curfew_delayed"

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
	before, unknown := o.Bound(limited, o.Exchange)
	err := s.control.QueueBind(o.Queue, "", o.Exchange, false, arguments)
	refused, _ := errors.AsType[*amqp091.Error](err)
	if refused != nil && refused.Code == amqp091.PreconditionFailed && strings.Contains(refused.Reason, ownType) {
		b.needless = true
		s.k.trouble("unbound", "", 0)
		return
	}
	if refused != nil && refused.Code == amqp091.NotFound {
		s.k.trouble("unbound", fmt.Sprintf("there is no exchange %s, so nothing is bound to the queue. Declare it (curfew rabbitmq plan --delay), or name the right one with exchange in the file that CURFEW_WATCH names.", o.Exchange), 0)
		return
	}
	if err != nil {
		s.k.trouble("unbound", fmt.Sprintf("the queue cannot be bound to %s, so messages may go out at once. Give Curfew's user the permission to read the exchange and to write the queue (%v)", o.Exchange, err), 0)
		return
	}
	s.k.trouble("unbound", "", 0)
	after, err := o.Bound(limited, o.Exchange)
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
