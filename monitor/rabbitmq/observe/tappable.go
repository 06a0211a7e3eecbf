package observe

import (
	"fmt"
	"slices"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/queuefacts"
)

// tapped are the types of exchanges that route a message to every queue with a matching
// binding, so that one more binding takes nothing away from another queue.
var tapped = []string{"direct", "fanout", "topic", "headers"}

// Untappable returns why a tap cannot show what enters a queue; empty: it can. bindings are
// those of the whole virtual host.
func Untappable(i *cluster.Inventory, q *cluster.Queue, exchanges map[string]cluster.Exchange, bindings []cluster.Binding) string {
	if q.Type == queuefacts.Stream {
		return "It is a stream: its messages have no deadlines."
	}
	if q.Exclusive {
		return "It is exclusive: only the connection that declared it can count its messages."
	}
	if _, ranked := q.Arguments["x-max-priority"]; ranked {
		return "Messages overtake one another by their priorities, so their number does not show which of them wait."
	}
	_, length := q.MaxLength()
	_, bytes := q.MaxLengthBytes()
	if (length || bytes) && q.Overflow() != "drop-head" {
		return "It refuses messages when it is full, and its exchanges do not show that."
	}
	bound := false
	for _, b := range bindings {
		if b.Queue != q.Name {
			continue
		}
		x, known := exchanges[b.Exchange]
		kind := x.Type
		if kind == "x-delayed-message" {
			kind, _ = x.Arguments["x-delayed-type"].(string)
		}
		if !known || !slices.Contains(tapped, kind) {
			return fmt.Sprintf("Exchange %s of type %q routes a message to only one of several queues, or not by bindings: a tap would take messages away, or miss them.", b.Exchange, x.Type)
		}
		bound = true
	}
	if !bound {
		return "Only the default exchange routes to it, and a tap cannot be bound to that."
	}
	for at := range i.Queues {
		from := &i.Queues[at]
		if dlx, ok := from.DeadLetterExchange(); ok && dlx == "" {
			if key, ok := from.DeadLetterRoutingKey(); ok && key == q.Name {
				return fmt.Sprintf("Dead letters of queue %s reach it through the default exchange, which cannot be tapped.", from.Name)
			}
		}
	}
	return ""
}
