package queuefacts

// Settings are those settings of a queue, by arguments and policies together, that decide whether its messages may be
// held. The zero value has nothing against it.
type Settings struct {
	Type         Type
	Exclusive    bool
	AutoDelete   bool
	Expires      bool // x-expires, or expires by policy
	SingleActive bool // x-single-active-consumer
	Overflow     Overflow
	DelayedRetry bool // quorum queues from 4.3 on: a delayed-retry-type other than disabled
}

// Code names the reason for a decision on a queue in one word, for metrics and tests.
type Code string

const (
	IsStream        Code = "stream"
	IsExclusive     Code = "exclusive"
	IsAutoDelete    Code = "auto_delete"
	HasExpires      Code = "expires"
	HasSingleActive Code = "single_active_consumer"
	DropsHead       Code = "max_length_drop_head"
	RejectsPublish  Code = "max_length_reject_publish"
	DelaysRetries   Code = "delayed_retry"
)

// Refusal is the reason why the messages of a queue must not be held.
type Refusal struct {
	Code    Code
	Reason  string // one sentence
	Instead string // what to do about it
}

// Refusal returns the first reason against holding the messages of such a queue; false: its settings allow it. Every
// reason was seen on real brokers.
func (s Settings) Refusal() (r Refusal, refused bool) {
	switch {
	case s.Type == Stream:
		r = Refusal{IsStream, "A stream keeps messages by age and size, and has no times to live.", "Set its x-max-age."}
	case s.Exclusive:
		r = Refusal{IsExclusive, "Only the connection that declared an exclusive queue can consume from it.", "Let the application expire what it does not need."}
	case s.AutoDelete:
		r = Refusal{IsAutoDelete, "It is deleted when its last consumer goes, and Curfew would be that consumer.", "Declare it without auto-delete."}
	case s.Expires:
		r = Refusal{HasExpires, "Consuming counts as use, so a queue with x-expires would live forever.", "Remove x-expires (in a policy: expires), or observe it."}
	case s.SingleActive:
		r = Refusal{HasSingleActive, "Curfew would be the single active consumer, and the applications would get nothing.", "Declare it without x-single-active-consumer: a queue of delays needs none."}
	case s.Overflow == RejectPublish:
		r = Refusal{RejectsPublish, "Messages that are held do not count towards max-length, so the limit would not hold.", "Remove max-length and set budget.messages, or observe it."}
	case s.Overflow == DropHead:
		r = Refusal{DropsHead, "Messages that are held do not count towards max-length: giving them back would drop the oldest.", "Remove max-length and set budget.messages, or observe it."}
	case s.DelayedRetry:
		r = Refusal{DelaysRetries, "It delays every message that is given back.", "Set delayed-retry-type to disabled: Curfew keeps the delays."}
	}
	return r, r.Code != ""
}
