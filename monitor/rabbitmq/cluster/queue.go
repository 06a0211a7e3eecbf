package cluster

import (
	"encoding/json"
	"math"
	"strings"

	"curfew/broker/deadline"
)

// Queue is what is known of one queue.
type Queue struct {
	Name                           string
	Type                           QueueType
	Durable, AutoDelete, Exclusive bool
	// State is "running", or something else that RabbitMQ says: "down", "minority". Empty: unknown.
	State string
	// Arguments are those it was declared with. Numbers are int64 or float64.
	Arguments map[string]any
	// Policy is what policies and operator policies define for it, as RabbitMQ merges them.
	Policy map[string]any

	Ready, Unacked int64
	Delayed        int64 // neither ready nor unacked: put aside until a time, or among Discarded; negative: unknown
	Discarded      int64 // that RabbitMQ's at-least-once dead-lettering has not delivered yet
	// Consumers is how many are attached. Attached names them, where that is known.
	Consumers int
	Attached  []Consumer
	// Published is how many messages have entered it since its statistics began.
	Published int64
	// Gets is how often it was read with basic.get since its statistics began, whether it
	// was empty or not. Polled: it was read in the last ten minutes, as far as the
	// inventories of one Cluster tell.
	Gets   int64
	Polled bool

	// Unknown says what could not be found out.
	Unknown Unknown
}

// Unknown is a set of things that could not be found out about a queue.
type Unknown uint8

const (
	// UnknownArguments: neither the type, nor flags, nor arguments.
	UnknownArguments Unknown = 1 << iota
	// UnknownPolicy: not all that policies define for it.
	UnknownPolicy
	// UnknownGets: not whether it is read with basic.get, nor what was published.
	UnknownGets
	// UnknownUnacked: not how many messages its consumers hold.
	UnknownUnacked
	// UnknownConsumers: not who consumes, only how many do.
	UnknownConsumers
)

// String lists what is unknown, for people; empty if nothing is.
func (u Unknown) String() string {
	var list []string
	for i, words := range []string{"its type, flags and arguments", "what policies define for it", "whether it is read with basic.get", "how many messages are unacknowledged", "who consumes"} {
		if u&(1<<i) != 0 {
			list = append(list, words)
		}
	}
	return strings.Join(list, "; ")
}

// Consumer is one consumer of a queue.
type Consumer struct {
	Tag       string
	Exclusive bool
	Priority  any // its argument x-priority, a float64; nil: it has none
}

// TTLMillis is how long messages may stay at most by argument and policy, whichever is
// lower. False: the queue sets no limit.
func (q *Queue) TTLMillis() (deadline.Millis, bool) { return q.Shortest("message-ttl") }

// HasMaxLength reports whether there is a limit to its ready messages or to their bytes.
func (q *Queue) HasMaxLength() bool {
	_, length := q.lowest("max-length")
	_, bytes := q.lowest("max-length-bytes")
	return length || bytes
}

// Overflow is what happens when it is full; "drop-head" unless something else is set.
func (q *Queue) Overflow() string {
	text, ok := q.Text("overflow")
	if q.Type == Quorum {
		text, ok = q.governed("overflow")
	}
	if ok {
		return text
	}
	return "drop-head"
}

// DeadLetterExchange is where its dead letters go; false: nowhere. The default exchange
// is the empty name.
func (q *Queue) DeadLetterExchange() (string, bool) { return q.Text("dead-letter-exchange") }

// DeliveryLimit is how often a message may be returned, by argument, policy and version;
// false: without limit. In 3.10 to 3.13, -1 is a limit of -1; from 4.0 on, the other one of argument and policy
// counts then.
func (q *Queue) DeliveryLimit(f Family) (int64, bool) {
	if q.Type != Quorum {
		return 0, false
	}
	limit, ok := q.lowest("delivery-limit")
	if !ok {
		return 20, f == Family40 || f == Family43
	}
	if limit < 0 && f != Family3 {
		for _, v := range []any{q.Arguments["x-delivery-limit"], q.Policy["delivery-limit"]} {
			if n, given := whole(v); given {
				limit = max(limit, n)
			}
		}
		return max(0, limit), limit >= 0
	}
	return limit, true
}

// lowest is the lower one of argument x-key and policy key, as RabbitMQ takes it for numbers.
func (q *Queue) lowest(key string) (value int64, ok bool) {
	value, ok = whole(q.Arguments["x-"+key])
	if v, given := whole(q.Policy[key]); given && (!ok || v < value) {
		value, ok = v, true
	}
	return value, ok
}

// Shortest is the lower one of argument x-key and policy key, for a setting in milliseconds. False: neither is set.
func (q *Queue) Shortest(key string) (deadline.Millis, bool) {
	ms, ok := q.lowest(key)
	return deadline.Millis(ms), ok
}

// governed is policy key, or else the argument x-key, as quorum queues take some texts.
func (q *Queue) governed(key string) (string, bool) {
	if s, ok := q.Policy[key].(string); ok {
		return s, ok
	}
	return q.Text(key)
}

// Text is the argument x-key, or else policy key, as RabbitMQ takes it for text. False: neither is set.
func (q *Queue) Text(key string) (string, bool) {
	if v, given := q.Arguments["x-"+key]; given {
		s, ok := v.(string)
		return s, ok
	}
	s, ok := q.Policy[key].(string)
	return s, ok
}

func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == math.Trunc(n)
	}
	return 0, false
}

// table reads an object of the API. RabbitMQ sometimes writes an empty one as a list.
type table map[string]any

func (t *table) UnmarshalJSON(text []byte) error {
	*t = nil
	if len(text) > 0 && text[0] != '{' {
		return nil
	}
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	for key, v := range raw {
		if n, ok := v.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			raw[key] = int64(n)
		}
	}
	*t = raw
	return nil
}
