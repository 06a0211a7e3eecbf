package policy

import (
	"cmp"
	"strings"
	"unique"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// retryType says which messages wait that come back (RabbitMQ 4.3: Quorum Queues, Delayed Retry).
var retryType = oneOf("disabled", "all", "failed", "returned")

const (
	retryTypeArg = "x-delayed-retry-type"
	retryMinArg  = "x-delayed-retry-min"
	retryMaxArg  = "x-delayed-retry-max"
)

// retry checks the arguments of a delayed retry, which only quorum queues have.
func (p *argParser) retry() unique.Handle[queue.Retry] {
	p.choice(retryTypeArg, retryType, `"expected disabled, all, failed or returned, got '%s'"`)
	p.integer(retryMinArg, 0, 0, MaxTTLMillis)
	p.integer(retryMaxArg, 0, 0, MaxTTLMillis)
	if p.err != nil {
		return queue.NoRetry
	}
	return retryOf(p.args, nil)
}

// retryOf is what a queue's arguments and policies say together about messages that come back.
func retryOf(args amqp.Table, d Definition) unique.Handle[queue.Retry] {
	var r queue.Retry
	steps, _ := d.Text("retry-backoff")
	given, _ := deadline.ParseBackoff(steps)
	r.Count = uint8(copy(r.Steps[:], given))
	kind, declared := args[retryTypeArg].(string)
	if !declared {
		kind, _ = d.Text("delayed-retry-type")
	}
	if kind == "" && r.Count > 0 {
		kind = "all"
	}
	r.Failed, r.Returned = kind == "all" || kind == "failed", kind == "all" || kind == "returned"
	r.Min = retryMillis(args, d, retryMinArg)
	r.Max = cmp.Or(retryMillis(args, d, retryMaxArg), r.Min)
	jitter, _ := d.Integer("retry-jitter")
	r.Jitter = uint8(jitter)
	if !r.Failed && !r.Returned || r.Count == 0 && r.Min == 0 {
		return queue.NoRetry
	}
	return unique.Make(r)
}

// retryMillis is an argument, or else the policy key of that name.
func retryMillis(args amqp.Table, d Definition, arg string) deadline.Millis {
	n, ok := amqp.Integer(args[arg])
	if !ok {
		n, _ = d.Integer(strings.TrimPrefix(arg, "x-"))
	}
	return deadline.Millis(n)
}

// finishRetry settles what follows from the keys and arguments of retries.
func (t *target) finishRetry(d Definition) {
	args := t.args
	if t.Type != Quorum {
		args = nil
	}
	t.Core.Retry = retryOf(args, d)
	if park, ok := d.Text("retry-park"); ok && !t.Keeps && t.name != UndeliverableQueue {
		park = strings.ReplaceAll(park, "{queue}", t.name)
		if len(park) <= 255 && park != t.name { // parked where it is already, it would be dropped as in a cycle
			t.names.Park = park
		}
	}
	if t.names != (Names{}) {
		t.Settings.names = unique.Make(t.names)
	}
	if t.names.Park != "" && t.Core.Retry != queue.NoRetry {
		tries := int64(t.Core.Retry.Value().Count)
		if tries > 0 && (t.Core.DeliveryLimit < 0 || tries < t.Core.DeliveryLimit) {
			t.Core.DeliveryLimit = tries
		}
	}
}

// For returns the settings by which a message is dead-lettered that leaves for this reason: after its
// last try it is parked, if there is a queue for that.
func (s *Settings) For(r queue.Reason) *Settings {
	park := s.Names().Park
	if r != queue.DeliveryLimit || park == "" {
		return s
	}
	parked := *s
	parked.DeadLetters, parked.DeadLetterExchange = true, ""
	parked.DeadLetterKey, parked.HasDeadLetterKey = park, true
	return &parked
}

func backoff(v any) bool {
	list, _ := v.(string)
	_, ok := deadline.ParseBackoff(list)
	return ok
}
