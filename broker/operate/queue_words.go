package operate

import (
	"fmt"
	"strings"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// QueueWords are what the settings of a queue come to, and what sets each: on its page, in the API and on the command line.
type QueueWords struct {
	TimeToLive  string `json:"time_to_live"`
	DeadLetters string `json:"dead_letters"` // where they go
	Purpose     string `json:"purpose"`
	Objective   string `json:"objective,omitempty"` // and how it is missed
	TimeInQueue string `json:"time_in_queue"`
}

// InWords says what the settings of a queue come to.
func (d *QueueDetail) InWords() QueueWords {
	w := QueueWords{
		TimeToLive: d.timeToLive(), DeadLetters: d.deadLetters(), Purpose: d.Purpose.String() + " (inferred)", Objective: d.Wait.Objective.String(),
		TimeInQueue: "nothing was consumed in the last minutes",
	}
	if said, by := d.set("curfew-purpose"); said != nil {
		w.Purpose = fmt.Sprintf("%s (%s)", d.Purpose, by)
	}
	if _, measured := d.Wait.Objective.Allowed(); measured {
		w.Objective += fmt.Sprintf("; %.1f %% missed it in the last minutes, %.1f times what it allows", 100*d.Wait.Missed, d.Wait.Burn)
	}
	if d.Wait.P50 > 0 {
		w.TimeInQueue = "half of what was consumed in the last minutes up to " + span(d.Wait.P50) + ", 99 in 100 up to " + span(d.Wait.P99)
	}
	return w
}

// set is a setting of the queue, and what sets it: its argument comes before a policy; nil: neither does.
func (d *QueueDetail) set(key string) (value any, by string) {
	if value = d.Args["x-"+key]; value != nil {
		return value, "argument x-" + key
	}
	return d.Effective[key], d.policies()
}

// policies are the policies that apply to the queue.
func (d *QueueDetail) policies() string {
	var names []string
	if d.Policy != "" {
		names = append(names, "policy "+d.Policy)
	}
	if d.OperatorPolicy != "" {
		names = append(names, "operator policy "+d.OperatorPolicy)
	}
	return strings.Join(names, " with ")
}

// timeToLive is the time to live that the queue gives to its messages: the lower one of its argument and the policies.
func (d *QueueDetail) timeToLive() string {
	declared, argued := amqp.Integer(d.Args["x-message-ttl"])
	governed, ruled := d.Effective.Integer("message-ttl")
	switch {
	case ruled && (!argued || governed < declared):
		return span(governed) + " (" + d.policies() + ")"
	case argued && ruled:
		return span(declared) + " (argument x-message-ttl; " + d.policies() + " has " + span(governed) + ", and the lower one applies)"
	case argued:
		return span(declared) + " (argument x-message-ttl)"
	}
	return "none: only each message's own applies"
}

// span is a span in words: 1h, not 1h0m0s.
func span[T ~int64](ms T) string {
	text := (time.Duration(ms) * time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// deadLetters is where dead letters go: arguments come before a policy, and an exchange before the queue's own dead-letter queue.
func (d *QueueDetail) deadLetters() string {
	exchange, by := d.set("dead-letter-exchange")
	key, _ := d.set("dead-letter-routing-key")
	to := ""
	switch {
	case exchange == nil:
		to = d.ownDeadLetterQueue()
	case exchange == "" && key != nil:
		to = fmt.Sprintf("to queue %v, by the default exchange (%s)", key, by)
	case key != nil:
		to = fmt.Sprintf("to exchange %v with routing key %v (%s)", exchange, key, by)
	case exchange == "":
		to = fmt.Sprintf("to the queue that their routing key names (%s)", by)
	default:
		to = fmt.Sprintf("to exchange %v with their own routing key (%s)", exchange, by)
	}
	if d.ExchangeMissing && exchange != nil {
		to += "; there is no such exchange"
	}
	if park, ok := d.Effective.Text("retry-park"); ok {
		return fmt.Sprintf("after the last try to queue %s (%s); others %s", strings.ReplaceAll(park, "{queue}", d.Name), d.policies(), to)
	}
	return to
}

// ownDeadLetterQueue is where the dead letters of a queue without a dead-letter exchange go. Neither a dead-letter queue nor the one of parked
// dead letters gets one by a policy.
func (d *QueueDetail) ownDeadLetterQueue() string {
	none := d.Args["x-dead-letter-queue"] == nil && (d.Name == policy.UndeliverableQueue || policy.IsSubqueue(d.Name))
	if own, by := d.set("dead-letter-queue"); own == true && !none {
		return fmt.Sprintf("to queue %s%s (%s)", d.Name, policy.SubqueueSuffix, by)
	}
	return "lost: it has no dead-letter exchange"
}
