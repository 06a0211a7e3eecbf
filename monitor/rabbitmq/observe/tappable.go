package observe

import (
	"fmt"
	"slices"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/queuefacts"
)

// tapped are the types of exchanges that route a message to every queue whose binding
// matches, so that one binding more takes nothing from another queue.
var tapped = []string{"direct", "fanout", "topic", "headers"}

// Untappable says why a tap cannot tell what enters a queue; empty: it can. bindings are
// those of the whole virtual host.
func Untappable(i *cluster.Inventory, q *cluster.Queue, exchanges map[string]cluster.Exchange, bindings []cluster.Binding) string {
	if q.Type == queuefacts.Stream {
		return "It is a stream: its messages have no deadlines."
	}
	if q.Exclusive {
		return "It is exclusive: its messages can be counted by the connection that declared it only."
	}
	if _, ranked := q.Arguments["x-max-priority"]; ranked {
		return "Messages overtake one another by their priorities, so their number does not say which wait."
	}
	_, length := q.MaxLength()
	_, bytes := q.MaxLengthBytes()
	if (length || bytes) && q.Overflow() != "drop-head" {
		return "It refuses messages when it is full, and its exchanges do not tell."
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
			return fmt.Sprintf("Exchange %s of type %q gives a message to one queue of several, or not by its bindings: a tap would take messages away, or not see them.", b.Exchange, x.Type)
		}
		bound = true
	}
	if !bound {
		return "Nothing but the default exchange leads to it, and no other queue can be bound there."
	}
	for at := range i.Queues {
		from := &i.Queues[at]
		if dlx, ok := from.DeadLetterExchange(); ok && dlx == "" {
			if key, ok := from.DeadLetterRoutingKey(); ok && key == q.Name {
				return fmt.Sprintf("Dead letters of queue %s reach it by the default exchange, which cannot be tapped.", from.Name)
			}
		}
	}
	return ""
}
