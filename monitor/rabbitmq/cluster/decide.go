package cluster

import (
	"fmt"
	"strings"

	"curfew/broker/deadline"
)

// Verdict is how the deadlines of a queue can be kept.
type Verdict uint8

const (
	// Unwatched: no rule names the queue, or one that says off.
	Unwatched Verdict = iota
	// Observed: what misses its deadline is said, nothing is changed.
	Observed
	// Kept: RabbitMQ is made to expire its messages on time.
	Kept
	// Exact: RabbitMQ expires its messages on time by itself.
	Exact
	// NotWorth: keeping it would hold many messages for the sake of few deadlines.
	NotWorth
	// Refused: keeping it would do harm. It is observed instead.
	Refused
)

// String is "unwatched", "observed", "kept", "exact", "not_worth", "refused".
func (v Verdict) String() string {
	return [...]string{"unwatched", "observed", "kept", "exact", "not_worth", "refused"}[v]
}

// MarshalText is String.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Code names the reason for a decision, for metrics and tests.
type Code string

const (
	ByRule            Code = "by_rule"
	UniformTTL        Code = "uniform_ttl"
	FewDeadlines      Code = "few_deadlines"
	NoStream          Code = "stream"
	NoSuchType        Code = "type"
	IsExclusive       Code = "exclusive"
	IsInternal        Code = "internal"
	IsAutoDelete      Code = "auto_delete"
	HasExpires        Code = "expires"
	HasSingleActive   Code = "single_active_consumer"
	DropsHead         Code = "max_length_drop_head"
	RejectsPublish    Code = "max_length_reject_publish"
	DelaysRetries     Code = "delayed_retry"
	IsPolled          Code = "polled"
	ExclusiveConsumer Code = "exclusive_consumer"
	LowDeliveryLimit  Code = "delivery_limit"
	TooMany           Code = "too_many_messages"
	NotRunning        Code = "not_running"
	OtherVersion      Code = "version"
	CannotBeKnown     Code = "cannot_be_known"
)

// Seen is what was seen of a queue's messages as they came, by a tap or a keeper. The zero
// value is nothing.
type Seen struct {
	Messages int             `json:"messages"`
	Expiring int             `json:"expiring"` // of these, how many had a time to live of their own
	Shorter  int             `json:"shorter"`  // and how many one below the queue's
	Least    deadline.Millis `json:"least_ms"` // the lowest of these times to live
	Most     deadline.Millis `json:"most_ms"`  // the highest of them
}

// Add takes note of a message with the time to live ttl in a queue with the time to live
// queue; below 0: none.
func (s *Seen) Add(ttl, queue deadline.Millis) {
	s.Messages++
	if ttl < 0 {
		return
	}
	if s.Expiring == 0 || ttl < s.Least {
		s.Least = ttl
	}
	s.Most = max(s.Most, ttl)
	s.Expiring++
	if queue >= 0 && ttl < queue {
		s.Shorter++
	}
}

// fewestSeen is how many messages have to be looked at before their share counts.
const fewestSeen = 100

// Decision is what is done with one queue, and why.
type Decision struct {
	Verdict Verdict
	Code    Code
	Reason  string // one sentence
	Instead string // what to do about it; empty: nothing
	// Mind is what one should know about a queue that is kept.
	Mind []string
}

// Decide says what is done with a queue: what its rule asks for, unless that would do harm
// or is not needed. It computes from what it is given and asks nobody.
//
// Only Kept means that the queue may be consumed. A queue that is Exact, NotWorth or
// Refused is observed.
//
// Every reason to refuse was seen on real brokers: see doc.go.
func Decide(q *Queue, r Rule, s Server, seen Seen) Decision {
	if r.Mode == Off {
		return Decision{Verdict: Unwatched, Code: ByRule, Reason: "A rule says off."}
	}
	if r.Mode == Observe {
		return Decision{Verdict: Observed, Code: ByRule, Reason: "A rule says observe."}
	}
	if d, exact := uniform(q, seen); exact {
		return d
	}
	if q.Unknown&(UnknownArguments|UnknownPolicy) != 0 && r.Assume == UnknownType && !q.Exclusive {
		return refuse(CannotBeKnown, "It cannot be known whether keeping it does harm: "+q.Unknown.String()+".",
			"Set CURFEW_PRIMARY_API_URL and give the user the tag monitoring, or vouch for the queue with assume: quorum (or classic) in a file that CURFEW_WATCH names.")
	}
	assumed := *q
	if q.Type == UnknownType {
		assumed.Type = r.Assume
	}
	for _, check := range []func(*Queue, Rule, Server) (Decision, bool){refuseKind, refuseSettings, refuseUse, refuseSize} {
		if d, no := check(&assumed, r, s); no {
			return d
		}
	}
	if seen.Messages >= fewestSeen && seen.Expiring*2 < seen.Messages {
		if _, limited := q.TTLMillis(); !limited {
			return Decision{Verdict: NotWorth, Code: FewDeadlines,
				Reason:  fmt.Sprintf("%d of the %d messages looked at have no time to live, and would have to be held all the same.", seen.Messages-seen.Expiring, seen.Messages),
				Instead: "Publish messages that expire to a queue of their own."}
		}
	}
	return Decision{Verdict: Kept, Code: ByRule, Reason: "A rule says keep, and nothing stands against it.", Mind: mind(&assumed, s)}
}

// uniform reports whether the order of the queue is the order of its deadlines.
func uniform(q *Queue, seen Seen) (d Decision, yes bool) {
	ttl, limited := q.TTLMillis()
	if !limited || seen.Shorter > 0 || q.Type == Stream {
		return d, false
	}
	d = Decision{Verdict: Exact, Code: UniformTTL, Reason: fmt.Sprintf("All messages have the queue's time to live of %d ms, so the next one to expire is at the head.", ttl)}
	if seen.Messages < fewestSeen {
		d.Mind = []string{"Messages with a shorter expiration of their own would be late."}
	}
	return d, true
}

func refuse(code Code, reason, instead string) Decision {
	return Decision{Verdict: Refused, Code: code, Reason: reason, Instead: instead}
}

// refuseKind looks at what the broker and the queue are.
func refuseKind(q *Queue, _ Rule, s Server) (Decision, bool) {
	switch {
	case s.Family() == UnknownFamily:
		return refuse(OtherVersion, fmt.Sprintf("Keeping was tried with RabbitMQ 3.10 and later, and this is %s.", s),
			"Observe it, or update RabbitMQ."), true
	case q.Type == Stream:
		return refuse(NoStream, "A stream keeps messages by age and size, and has no times to live.", "Set its x-max-age."), true
	case q.Arguments["x-internal-purpose"] != nil:
		return refuse(IsInternal, "It belongs to RabbitMQ's federation or another plugin.", ""), true
	case q.Exclusive:
		return refuse(IsExclusive, "An exclusive queue can be consumed by the connection that declared it only.", "Have the application expire what it does not need."), true
	case q.Type != Classic && q.Type != Quorum:
		return refuse(NoSuchType, fmt.Sprintf("Queues of type %q were never tried.", string(q.Type)), "Use a quorum queue."), true
	case q.State != "" && q.State != "running":
		return refuse(NotRunning, fmt.Sprintf("Its state is %q.", q.State), "Bring back its nodes; it is looked at again by itself."), true
	}
	return Decision{}, false
}

// refuseSettings looks at arguments and policies.
func refuseSettings(q *Queue, _ Rule, s Server) (Decision, bool) {
	_, length := q.MaxLength()
	_, bytes := q.MaxLengthBytes()
	_, expires := q.Expires()
	limit, limited := q.DeliveryLimit(s.Family())
	switch {
	case q.AutoDelete:
		return refuse(IsAutoDelete, "It is deleted when its last consumer goes, and Curfew would be that one.", "Declare it without auto-delete; with x-expires it goes when nobody uses it."), true
	case expires:
		return refuse(HasExpires, "Consuming counts as use, so a queue with x-expires would live forever.", "Take x-expires (policy expires) off, or observe it."), true
	case q.SingleActiveConsumer():
		return refuse(HasSingleActive, "Curfew would be the single active consumer, and the application would get nothing.", "Declare it without x-single-active-consumer: a queue of delays needs none."), true
	case (length || bytes) && strings.HasPrefix(q.Overflow(), "reject-publish"):
		return refuse(RejectsPublish, "Only ready messages count for its maximal length, so the limit would hold no more.", "Take max-length off and set budget.messages, or observe it."), true
	case length || bytes:
		return refuse(DropsHead, "Only ready messages count for its maximal length: giving back what is held would drop the oldest.", "Take max-length off and set budget.messages, or observe it."), true
	case q.Type == Quorum && q.DelayedRetry() != "" && q.DelayedRetry() != "disabled":
		return refuse(DelaysRetries, "It delays every message that is given back.", "Set delayed-retry-type to disabled: Curfew keeps the delays."), true
	case limited && s.Family().returnsCount() && limit < 4:
		return refuse(LowDeliveryLimit, fmt.Sprintf("Every return counts against its delivery limit of %d, and no more than a quarter of it may be spent.", limit),
			"Raise delivery-limit to 20 or more by a policy, or use RabbitMQ 4.3 or later, where a nack does not count."), true
	}
	return Decision{}, false
}

// refuseUse looks at who uses the queue.
func refuseUse(q *Queue, _ Rule, _ Server) (Decision, bool) {
	if q.Polled || q.GetRate > 0 {
		return refuse(IsPolled, "It is read with basic.get, which would find nothing, and nothing tells Curfew that somebody came.", "Have the application consume (basic.consume)."), true
	}
	for _, c := range q.Attached {
		if c.Exclusive {
			return refuse(ExclusiveConsumer, fmt.Sprintf("Its consumer %s is exclusive: nobody else may consume.", c.Tag), "Consume without the exclusive flag."), true
		}
	}
	return Decision{}, false
}

// refuseSize looks at how much would be held.
func refuseSize(q *Queue, r Rule, _ Server) (Decision, bool) {
	most := r.Budget.Messages
	if q.Type == Classic {
		most = min(most, MaxClassic)
	}
	if all := q.Ready + q.Unacked; all > int64(most) {
		instead := fmt.Sprintf("Raise budget.messages in the file that CURFEW_WATCH names (%d at most).", maxQuorum)
		if q.Type == Classic {
			instead = fmt.Sprintf("Use a quorum queue, of which up to %d can be held, or several queues.", maxQuorum)
		}
		return refuse(TooMany, fmt.Sprintf("It has %d messages, and %d may be held.", all, most), instead), true
	}
	return Decision{}, false
}

// mind lists what one should know about a kept queue.
func mind(q *Queue, s Server) (list []string) {
	if q.Type == Classic {
		list = append(list, "Nobody may delete it with if-empty: RabbitMQ counts ready messages only, and would delete it with all that is held.")
	}
	if limit, limited := q.DeliveryLimit(s.Family()); limited && s.Family().returnsCount() {
		list = append(list, fmt.Sprintf("Every return counts against its delivery limit of %d; Curfew spends %d of it at most.", limit, limit/4))
	}
	if q.Consumers > 0 {
		list = append(list, fmt.Sprintf("%d consumers are attached: while they are, Curfew stands aside.", q.Consumers))
	}
	if q.Gets > 0 {
		list = append(list, fmt.Sprintf("It was read with basic.get %d times before; while it is kept, that finds nothing.", q.Gets))
	}
	if q.Unknown != 0 {
		list = append(list, "Not known: "+q.Unknown.String()+".")
	}
	if _, ok := q.DeadLetterExchange(); !ok && q.Unknown&(UnknownArguments|UnknownPolicy) == 0 {
		list = append(list, "It has no dead-letter exchange: what expires is gone.")
	}
	return list
}
