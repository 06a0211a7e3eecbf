package policy

import (
	"fmt"
	"strings"
	"time"

	"curfew/broker/amqp"
)

// Given is what a queue was declared with, and the policies that apply to it.
type Given struct {
	Queue          string
	Args           amqp.Table
	User, Operator string     // names of policies; "": none
	Effective      Definition // of both together
}

// Set is a setting of the queue, and what sets it: its argument comes before a policy; nil: neither does.
func (g *Given) Set(key string) (value any, by string) {
	if value = g.Args["x-"+key]; value != nil {
		return value, "argument x-" + key
	}
	return g.Effective[key], g.policies()
}

// policies are the policies that apply to the queue.
func (g *Given) policies() string {
	var names []string
	if g.User != "" {
		names = append(names, "policy "+g.User)
	}
	if g.Operator != "" {
		names = append(names, "operator policy "+g.Operator)
	}
	return strings.Join(names, " with ")
}

// TimeToLive is, in words, the time to live that the queue gives to its messages: the lower one of its argument and the policies.
func (g *Given) TimeToLive() string {
	declared, argued := amqp.Integer(g.Args["x-message-ttl"])
	governed, ruled := g.Effective.Integer("message-ttl")
	argued, ruled = argued && !IsNever(declared), ruled && !IsNever(governed)
	declared, governed = min(declared, longest), min(governed, longest)
	switch {
	case ruled && (!argued || governed < declared):
		return Span(governed) + " (" + g.policies() + ")"
	case argued && ruled:
		return Span(declared) + " (argument x-message-ttl; " + g.policies() + " has " + Span(governed) + ", and the lower one applies)"
	case argued:
		return Span(declared) + " (argument x-message-ttl)"
	}
	return "none: only each message's own applies"
}

// Span is a span in words: 1h, not 1h0m0s.
func Span[T ~int64](ms T) string {
	text := (time.Duration(ms) * time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// DeadLetters is, in words, where dead letters go, to an exchange that is missing or not: arguments come before a policy, and an exchange before
// the queue's own dead-letter queue.
func (g *Given) DeadLetters(missing bool) string {
	exchange, by := g.Set("dead-letter-exchange")
	key, _ := g.Set("dead-letter-routing-key")
	var to string
	switch {
	case exchange == nil:
		to = g.ownDeadLetterQueue()
	case exchange == "" && key != nil:
		to = fmt.Sprintf("to queue %v, by the default exchange (%s)", key, by)
	case key != nil:
		to = fmt.Sprintf("to exchange %v with routing key %v (%s)", exchange, key, by)
	case exchange == "":
		to = fmt.Sprintf("to the queue that their routing key names (%s)", by)
	default:
		to = fmt.Sprintf("to exchange %v with their own routing key (%s)", exchange, by)
	}
	if missing && exchange != nil {
		to += "; there is no such exchange"
	}
	if park, ok := g.Effective.Text("retry-park"); ok {
		return fmt.Sprintf("after the last try to queue %s (%s); others %s", strings.ReplaceAll(park, "{queue}", g.Queue), g.policies(), to)
	}
	return to
}

// ownDeadLetterQueue is where the dead letters of a queue without a dead-letter exchange go. Neither a dead-letter queue nor the one of parked
// dead letters gets one by a policy.
func (g *Given) ownDeadLetterQueue() string {
	none := g.Args["x-dead-letter-queue"] == nil && (g.Queue == UndeliverableQueue || IsSubqueue(g.Queue))
	if own, by := g.Set("dead-letter-queue"); own == true && !none {
		return fmt.Sprintf("to queue %s%s (%s)", g.Queue, SubqueueSuffix, by)
	}
	return "lost: it has no dead-letter exchange"
}
