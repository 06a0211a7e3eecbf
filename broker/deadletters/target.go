package deadletters

import (
	"cmp"
	"slices"

	"curfew/broker"
	"curfew/broker/deadline"
)

// Target is a queue that replayed messages would go to, at the moment.
type Target struct {
	Queue     string `json:"queue"`
	Messages  int    `json:"messages"`
	Consumers int    `json:"consumers"`
	// Expiring is how many would expire there if nobody consumes them, by the time to live of the message and of the queue.
	Expiring    int   `json:"expiring"`
	FirstMillis int64 `json:"first_expiry_millis"` // in how many ms the first of these would expire
	LastMillis  int64 `json:"last_expiry_millis"`  // in how many ms the last of them would
	// Back reports whether messages that expire or are rejected there come back to the queue that is replayed.
	Back bool `json:"back"`
}

// targets gathers the queues that the messages of a dry run would go to.
type targets map[*broker.Queue]*arrivals

// arrivals are the messages that would enter one queue. first and last are deadlines.
type arrivals struct {
	messages, expiring int
	first, last        deadline.Instant
}

func (t targets) add(to []broker.Arrival) {
	for _, one := range to {
		a := t[one.Queue]
		if a == nil {
			a = &arrivals{}
			t[one.Queue] = a
		}
		a.messages++
		if one.Expires == 0 {
			continue
		}
		if a.expiring++; a.expiring == 1 || one.Expires < a.first {
			a.first = one.Expires
		}
		a.last = max(a.last, one.Expires)
	}
}

// list returns the targets of messages from a queue, the ones with the most messages first.
func (t targets) list(b *broker.Broker, from *broker.Queue) []Target {
	list, now := make([]Target, 0, len(t)), b.UnixMillis(b.Now())
	var lead map[*broker.Queue][]*broker.Queue
	if vh, err := b.VHostOf(from); err == nil {
		lead = vh.DeadLetterTargets()
	}
	for q, a := range t {
		one := Target{Queue: q.Name, Messages: a.messages, Expiring: a.expiring, Back: slices.Contains(lead[q], from)}
		_, _, one.Consumers = q.Messages.Counts()
		if a.expiring > 0 {
			one.FirstMillis, one.LastMillis = max(b.UnixMillis(a.first)-now, 0), max(b.UnixMillis(a.last)-now, 0)
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Target) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Queue, b.Queue))
	})
	return list
}
