package observe

import (
	"cmp"
	"slices"

	"curfew/broker/deadline"
)

// maxDeadlines is how many deadlines a line knows at most. When there are more, those of messages that have left are forgotten first, and
// then those of new messages are not noted (Counts.Unknown).
const maxDeadlines = 1_000_000

// line computes which messages of one queue still waited at their deadlines, from what its
// tap has received and how many messages were ready. It has no clock and no lock, and
// changes nothing in RabbitMQ.
//
// The messages are numbered in the order in which they entered. Of E messages that have
// entered, those that wait are the last ones: message k waits if and only if E-1-k < ready.
// A requeued message is ready again, and counts as such.
//
// A tap and a count are never from the same instant, so E is known within bounds, and so is
// the head of the queue: messages before `gone` have left it, those from `there` on wait,
// and a later count decides about the few between.
//
// newLine makes an empty queue that nobody has counted.
type line struct {
	entered uint64
	due     deadline.Heap[waiting] // not judged yet, by deadline
	doubt   []waiting              // due, and between gone and there at the last count
	overdue deadline.Heap[waiting] // missed, and not yet seen to leave, by number

	overdueSince deadline.Instant // the earliest deadline of overdue; 0: look for it

	gone, there int64 // of the last count; below 0: messages from before the tap wait
	ready       int
	consumers   int
	counted     deadline.Instant // of the last count; 0: none
	left        uint64           // messages that have left, at least; never falls
	pruneAt     int64            // what gone has to be before another look for deadlines to forget
	counts      Counts
}

// Counts are what a line has counted since it began. They never fall.
type Counts struct {
	Entered uint64 `json:"entered"`
	Expire  uint64 `json:"with_deadline"` // of these, how many had a deadline
	InTime  uint64 `json:"in_time"`       // left before their deadlines
	Missed  uint64 `json:"missed"`        // still waited at their deadlines
	Expired uint64 `json:"expired"`       // of these, how many have left
	Unknown uint64 `json:"unknown"`       // deadlines that were not noted for lack of room
	// Unsure is how many of InTime may have expired instead: they left the queue between the last two counts, around their deadlines, while
	// something consumed. So between Missed and Missed+Unsure messages have missed their deadlines.
	Unsure uint64 `json:"unsure"`
}

type waiting struct {
	number   uint64
	deadline deadline.Instant
	ttl      deadline.Millis
	id       string
}

// count is how many messages were ready, at some instant between Asked and Answered.
type count struct {
	Asked, Answered deadline.Instant
	Ready           int
	Consumers       int
	// Before is the value of Entered when the question was asked. After is its value once
	// every message had arrived that had entered the queue by the answer.
	Before, After uint64
}

func newLine() *line {
	l := &line{}
	l.due.Before = func(a, b waiting) bool { return a.deadline < b.deadline }
	l.overdue.Before = func(a, b waiting) bool { return a.number < b.number }
	return l
}

// Counts returns the counts so far.
func (l *line) Counts() Counts {
	l.counts.Entered = l.entered
	return l.counts
}

// Overdue returns how many messages have missed their deadlines and still wait, and the
// earliest of these deadlines.
func (l *line) Overdue() (n int, since deadline.Instant) {
	if l.overdueSince == 0 && len(l.overdue.Items) > 0 {
		l.overdueSince = slices.MinFunc(l.overdue.Items, func(a, b waiting) int { return cmp.Compare(a.deadline, b.deadline) }).deadline
	}
	return len(l.overdue.Items), l.overdueSince
}

// NextDeadline returns the earliest deadline that was not judged yet; 0: there is none.
func (l *line) NextDeadline() deadline.Instant {
	if len(l.due.Items) == 0 {
		return 0
	}
	return l.due.Items[0].deadline
}

// Enter notes a message that has entered the queue with a time to live. It expires at the
// instant at; if that is 0, it never does.
func (l *line) Enter(at deadline.Instant, ttl deadline.Millis, id string) {
	number := l.entered
	l.entered++
	if at == 0 {
		return
	}
	l.counts.Expire++
	if len(l.due.Items) >= maxDeadlines && (l.gone < l.pruneAt || l.prune() >= maxDeadlines) {
		l.counts.Unknown++
		return
	}
	l.due.Push(waiting{number, at, ttl, id})
}

// TimeToLive returns the time to live with which a waiting message entered; false: it does
// not wait, or its deadline is not known.
func (l *line) TimeToLive(number uint64) (deadline.Millis, bool) {
	for _, list := range [][]waiting{l.due.Items, l.doubt, l.overdue.Items} {
		for i := range list {
			if list[i].number == number {
				return list[i].ttl, true
			}
		}
	}
	return 0, false
}

// prune forgets the deadlines of messages that have left, and returns how many deadlines
// stay. It forgets all of them at once, and only when an eighth may have left since, so that it is not called for each message.
func (l *line) prune() int {
	before := len(l.due.Items)
	l.due.Items = slices.DeleteFunc(l.due.Items, func(w waiting) bool { return int64(w.number) < l.gone })
	kept := len(l.due.Items)
	l.counts.InTime += uint64(before - kept)
	l.pruneAt = l.gone + int64(kept/8) + 1
	l.due.Init()
	return kept
}

// Count judges the messages that are due by c.Asked, and appends those to out that have missed their deadlines and are seen to have left. RabbitMQ
// delivers no expired message, so each expired between the last count and this one.
func (l *line) Count(c count, out []waiting) []waiting {
	alone := l.counted != 0 && l.consumers == 0 && c.Consumers == 0 // nobody consumed since the last count
	wasGone, wasThere := l.gone, l.there
	l.gone, l.there = int64(c.Before)-int64(c.Ready), int64(c.After)-int64(c.Ready)
	l.ready, l.consumers, l.counted = c.Ready, c.Consumers, c.Answered

	// Messages in doubt are judged once more, with those that have become due.
	looked := l.doubt
	l.doubt = nil
	for len(l.due.Items) > 0 && l.due.Items[0].deadline <= c.Asked {
		looked = append(looked, l.due.Remove(0))
	}
	for _, w := range looked {
		switch number := int64(w.number); {
		case number >= l.there:
			l.counts.Missed++
			l.overdue.Push(w)
			l.overdueSince = min(l.overdueSince, w.deadline)
		case number >= l.gone:
			l.doubt = append(l.doubt, w)
		case alone && number >= wasThere:
			l.counts.Missed++
			l.counts.Expired++
			out = append(out, w)
		default:
			l.counts.InTime++
			if number >= wasGone {
				l.counts.Unsure++
			}
		}
	}
	for len(l.overdue.Items) > 0 && int64(l.overdue.Items[0].number) < l.gone {
		w := l.overdue.Remove(0)
		if w.deadline == l.overdueSince {
			l.overdueSince = 0
		}
		l.counts.Expired++
		out = append(out, w)
	}
	if l.gone > 0 && uint64(l.gone) > l.left {
		l.left = uint64(l.gone)
	}
	return out
}

// served returns how many messages have left without expiring.
func (l *line) served() uint64 {
	if l.left < l.counts.Expired {
		return 0
	}
	return l.left - l.counts.Expired
}
