package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is how the deadlines of a queue can be kept.
type Verdict string

const (
	// Unwatched: no rule matches the queue, or its rule says off.
	Unwatched Verdict = "unwatched"
	// Observed: messages that miss their deadlines are reported; nothing is changed.
	Observed Verdict = "observed"
	// Kept: RabbitMQ is made to expire its messages on time.
	Kept Verdict = "kept"
	// Exact: RabbitMQ expires its messages on time by itself.
	Exact Verdict = "exact"
	// NotWorth: keeping it would hold many messages for few deadlines.
	NotWorth Verdict = "not_worth"
	// Refused: keeping it would do harm. It is observed instead.
	Refused Verdict = "refused"
)

// Code names the reason for a decision on a queue in one word, for metrics and tests.
type Code string

const (
	ByRule            Code = "by_rule"
	UniformTTL        Code = "uniform_ttl"
	FewDeadlines      Code = "few_deadlines"
	IsStream          Code = "stream"
	NoSuchType        Code = "type"
	IsInternal        Code = "internal"
	IsExclusive       Code = "exclusive"
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
	LeadsNowhere      Code = "no_dead_letter_exchange"
)

// fewestSeen is how many messages have to be seen before their share counts.
const fewestSeen = 100

// Decision is what is done with one queue, and why.
type Decision struct {
	Verdict Verdict
	Code    Code
	Reason  string // one sentence
	Instead string // what to do about it; empty: nothing
	// Mind is what to know about a queue that is kept.
	Mind []string
}

// Decide decides what is done with a queue: what its rule asks for, unless that would do harm
// or is not needed. It only computes.
//
// watched reports whether a tap sees every message that enters the queue. Where none does, a
// shorter time to live than the queue's would go unseen, so the queue is kept.
//
// Only Kept means that the queue may be consumed. A queue that is Exact, NotWorth or
// Refused is observed.
//
// Every reason to refuse was seen on real brokers: see doc.go.
func Decide(q *Queue, r Rule, s Server, seen TTLStats, watched bool) Decision {
	if r.Mode == Off {
		return Decision{Verdict: Unwatched, Code: ByRule, Reason: "A rule says off."}
	}
	if r.Mode == Observe {
		return Decision{Verdict: Observed, Code: ByRule, Reason: "A rule says observe."}
	}
	if d, exact := uniform(q, seen); exact && watched && r.Mode == Keep {
		return d
	}
	if q.Unknown&(UnknownArguments|UnknownPolicy) != 0 && r.Assume == UnknownType && !q.Exclusive {
		return refuse(CannotBeKnown, "It is unknown whether keeping it does harm. Not known: "+q.Unknown.String()+".",
			"Set CURFEW_PRIMARY_API_URL and give the user the tag monitoring, or vouch for the queue with assume: quorum (or classic) in the file that CURFEW_WATCH names.")
	}
	assumed := *q
	if q.Type == UnknownType {
		assumed.Type = r.Assume
	}
	if d := refusal(&assumed, r, s); d.Code != "" {
		return d
	}
	if r.Mode.Waits() {
		return decideDelay(&assumed, r, s)
	}
	if seen.Messages >= fewestSeen && seen.Expiring*2 < seen.Messages {
		if _, limited := q.TTLMillis(); !limited {
			return Decision{Verdict: NotWorth, Code: FewDeadlines,
				Reason:  fmt.Sprintf("%d of the %d messages seen have no time to live, and would have to be held as well.", seen.Messages-seen.Expiring, seen.Messages),
				Instead: "Publish messages that expire to a queue of their own."}
		}
	}
	return Decision{Verdict: Kept, Code: ByRule, Reason: "A rule says keep, and nothing prevents it.", Mind: mind(&assumed, s)}
}

// decideDelay decides on a queue whose messages may be held.
func decideDelay(q *Queue, r Rule, s Server) Decision {
	limit, limited := q.DeliveryLimit(s.Family())
	_, leads := q.DeadLetterExchange()
	switch {
	case r.Mode == Retry && q.Type != Quorum && s.Family() != Family3:
		return refuse(NoSuchType, "From RabbitMQ 4.0 on, Curfew writes on each message where it goes, and a classic queue drops that.", "Use a quorum queue.")
	case !leads && q.Unknown&(UnknownArguments|UnknownPolicy) == 0:
		return refuse(LeadsNowhere, "It has no dead-letter exchange, so messages that are due would be gone.", "Set dead-letter-exchange by a policy: curfew rabbitmq plan, with --delay or --retry, prints one.")
	case limited && s.Family() != Family43:
		instead := "Set delivery-limit to -1 by a policy."
		if s.Family() == Family3 {
			instead = "Remove delivery-limit."
		}
		return refuse(LowDeliveryLimit, fmt.Sprintf("After %d returns RabbitMQ would deliver a message that is not due, and each quarter of an hour of holding it is one.", limit), instead)
	}
	d := Decision{Verdict: Kept, Code: ByRule, Reason: "A rule says " + string(r.Mode) + ", and nothing prevents it."}
	if limited {
		d.Mind = append(d.Mind, fmt.Sprintf("Each lost connection counts against its delivery limit of %d: set it to -1 by a policy.", limit))
	}
	if strategy, _ := q.Text("dead-letter-strategy"); q.Type == Classic || strategy != "at-least-once" {
		d.Mind = append(d.Mind, "Without the dead-letter-strategy at-least-once, which only quorum queues have, RabbitMQ loses a message that no queue is bound for when it is due.")
	}
	if q.Type == Classic {
		d.Mind = append(d.Mind, "Nobody may delete it with if-empty: RabbitMQ counts ready messages only, and would delete it with all messages held.")
	}
	return d
}

// uniform reports whether the order of the queue is the order of its deadlines.
func uniform(q *Queue, seen TTLStats) (d Decision, yes bool) {
	ttl, limited := q.TTLMillis()
	shorter := seen.Shorter > 0 || seen.Expiring > 0 && seen.Least < ttl // the second: they came before the queue had this one
	if !limited || shorter || q.Type == Stream {
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

// refusal returns the first reason against holding the queue's messages; the zero value: there is none.
func refusal(q *Queue, r Rule, s Server) (d Decision) {
	if s.Family() == UnknownFamily {
		return refuse(OtherVersion, fmt.Sprintf("Curfew keeps queues of RabbitMQ 3.10 and later, and this is %s.", s), "Observe it, or update RabbitMQ.")
	}
	if q.Arguments["x-internal-purpose"] != nil {
		return refuse(IsInternal, "It belongs to RabbitMQ's federation or another plugin.", "")
	}
	if d := settingsRefuse(q); d.Code != "" {
		return d
	}
	limit, limited := q.DeliveryLimit(s.Family())
	most, raise := r.Budget.Messages, fmt.Sprintf("Raise budget.messages in the file that CURFEW_WATCH names (%d at most).", maxQuorum)
	if q.Type == Classic {
		most, raise = min(most, MaxClassic), fmt.Sprintf("Use a quorum queue, which may have up to %d messages, or several queues.", maxQuorum)
	}
	exclusive := slices.IndexFunc(q.Attached, func(c Consumer) bool { return c.Exclusive })
	switch all := q.Ready + q.Unacked; {
	case q.Type != Classic && q.Type != Quorum:
		return refuse(NoSuchType, fmt.Sprintf("Curfew was never tested with queues of type %q.", string(q.Type)), "Use a quorum queue.")
	case r.Mode == Keep && limited && s.Family() != Family43 && limit < 4:
		return refuse(LowDeliveryLimit, fmt.Sprintf("Every return counts against its delivery limit of %d, and no more than a quarter of it may be spent.", limit),
			"Raise delivery-limit to 20 or more by a policy, or use RabbitMQ 4.3 or later, where a nack does not count.")
	case q.State != "" && q.State != "running":
		return refuse(NotRunning, fmt.Sprintf("Its state is %q.", q.State), "Bring back its nodes; Curfew looks at it again by itself.")
	case q.Polled && !r.Mode.Waits(): // nobody's work is in a queue of those, and who looks into it once gains nothing
		return refuse(IsPolled, "It is read with basic.get, which would find nothing, and Curfew would not notice the reader.", "Have the application consume (basic.consume).")
	case exclusive >= 0:
		return refuse(ExclusiveConsumer, fmt.Sprintf("Its consumer %s is exclusive: nobody else may consume from the queue.", q.Attached[exclusive].Tag), "Consume without the exclusive flag.")
	case all > int64(most):
		return refuse(TooMany, fmt.Sprintf("It has %d messages, and at most %d may be held.", all, most), raise)
	}
	return d
}

// settingsRefuse is refusal by the queue's type, flags, arguments and policies.
func settingsRefuse(q *Queue) (d Decision) {
	_, expires := q.Shortest("expires")
	limited := q.HasMaxLength()
	delayed, _ := q.governed("delayed-retry-type")
	_, waits := q.lowest("delayed-retry-min") // without, it is as if it were disabled
	switch {
	case q.Type == Stream:
		return refuse(IsStream, "A stream keeps messages by age and size, and has no times to live.", "Set its x-max-age.")
	case q.Exclusive:
		return refuse(IsExclusive, "Only the connection that declared an exclusive queue can consume from it.", "Let the application expire what it does not need.")
	case q.AutoDelete:
		return refuse(IsAutoDelete, "It is deleted when its last consumer goes, and Curfew would be that consumer.", "Declare it without auto-delete.")
	case expires:
		return refuse(HasExpires, "Consuming counts as use, so a queue with x-expires would live forever.", "Remove x-expires (in a policy: expires), or observe it.")
	case q.Arguments["x-single-active-consumer"] == true:
		return refuse(HasSingleActive, "Curfew would be the single active consumer, and the applications would get nothing.", "Declare it without x-single-active-consumer: a queue of delays needs none.")
	case limited && q.Overflow() != "drop-head":
		return refuse(RejectsPublish, "Messages that are held do not count towards max-length, so the limit would not hold.", "Remove max-length and set budget.messages, or observe it.")
	case limited:
		return refuse(DropsHead, "Messages that are held do not count towards max-length: giving them back would drop the oldest.", "Remove max-length and set budget.messages, or observe it.")
	case q.Type == Quorum && waits && delayed != "" && delayed != "disabled":
		return refuse(DelaysRetries, "It delays every message that is given back.", "Set delayed-retry-type to disabled: Curfew keeps the delays.")
	}
	return d
}

// mind lists what to know about a kept queue.
func mind(q *Queue, s Server) (list []string) {
	if q.Type == Classic {
		list = append(list, "Nobody may delete it with if-empty: RabbitMQ counts ready messages only, and would delete it with all messages held.")
	}
	if limit, limited := q.DeliveryLimit(s.Family()); limited && s.Family() != Family43 {
		list = append(list, fmt.Sprintf("Every return counts against its delivery limit of %d; Curfew spends at most %d of it, one for each quarter of an hour that a message is held: it lets go of a queue with longer delays.", limit, limit/4))
	}
	if q.Type == Quorum && s.Family() == Family40 {
		list = append(list, "In a cluster, if the node that Curfew is connected to goes down, most of what it held is late until the queue has another leader (not before 4.0, nor from 4.3 on).")
	}
	others := q.Consumers
	for _, c := range q.Attached {
		if strings.HasPrefix(c.Tag, NamePrefix) {
			others--
		}
	}
	if others > 0 {
		list = append(list, fmt.Sprintf("Consumers of applications: %d. As long as one is attached, Curfew stands aside.", others))
	}
	if q.Gets > 0 {
		list = append(list, fmt.Sprintf("It has been read with basic.get %d times; while it is kept, basic.get finds nothing.", q.Gets))
	}
	if q.Unknown != 0 {
		list = append(list, "Not known: "+q.Unknown.String()+".")
	}
	if _, ok := q.DeadLetterExchange(); !ok && q.Unknown&(UnknownArguments|UnknownPolicy) == 0 {
		list = append(list, "It has no dead-letter exchange: messages that expire are gone.")
	}
	return list
}
