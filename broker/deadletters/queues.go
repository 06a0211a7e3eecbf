package deadletters

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"time"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Queue is one that dead letters go to or are in.
type Queue struct {
	VHost   string `json:"vhost" hide:"table"`
	Queue   string `json:"queue"`
	Ready   int    `json:"ready"`
	Unacked int    `json:"unacked"`
	Bytes   int64  `json:"bytes" table:"BYTES?"` // of the bodies
	// Purpose is what the queue is for; "": not known. Its messages count as dead letters if that is to keep them; otherwise they only pass through.
	Purpose string `json:"purpose" table:"PURPOSE?"`
	// From are the queues whose dead letters go here, by name; at most 100.
	From []string `json:"from" table:"FROM="`
	// Parked: it is the queue for dead letters that cannot be routed.
	Parked bool `json:"parked" hide:"table"`
}

// Kept is how many dead letters the queue keeps.
func (q *Queue) Kept() int {
	if q.Purpose == deadline.DeadLetters.String() {
		return q.Ready + q.Unacked
	}
	return 0
}

// Cell is a column as text in a table of commands; false: it is as it is.
func (q *Queue) Cell(column string) (text string, is bool) {
	return "(parked; curfew dlq groups " + deadline.Shell(q.Queue) + Flag(q.VHost) + " says why)", column == "from" && q.Parked
}

// Flag is the flag that a command needs for a virtual host, with a space before it; "" for that which it is for without the flag.
func Flag(vhost string) string {
	if vhost == "/" {
		return ""
	}
	return " --vhost " + deadline.Shell(vhost)
}

// Kept is how many dead letters queues keep.
func Kept(list []*Queue) (n int) {
	for _, q := range list {
		n += q.Kept()
	}
	return n
}

const (
	maxFrom = 100
	// sampled is how many messages at a queue's head and tail are examined, to find dead
	// letters in a queue that no other queue dead-letters to.
	sampled = 8
)

// Queues lists the queues of vh that dead letters go to, that have some at their
// head or tail, or whose arguments or policy say that they are for dead letters, the fullest first. purpose may be nil.
func Queues(vh *broker.VHost, purpose func(*broker.Queue) deadline.Purpose) []Queue {
	all, targets := vh.Queues.List(), vh.DeadLetterTargets()
	from := map[*broker.Queue][]string{}
	for _, q := range all {
		for _, to := range targets[q] {
			if len(from[to]) < maxFrom {
				from[to] = append(from[to], q.Name)
			}
		}
	}
	found := []Queue{}
	for _, q := range all {
		feeders, target := from[q]
		parked := q.Name == policy.UndeliverableQueue
		meant := parked || policy.IsSubqueue(q.Name) || q.Settings().Purpose == deadline.DeadLetters
		if !target && !meant && !hasLetters(q) {
			continue
		}
		i := q.Info()
		found = append(found, Queue{vh.Name(), i.Name, i.Ready, i.Unacked, i.ReadyBytes + i.UnackedBytes, "", append([]string{}, feeders...), parked})
		if purpose != nil {
			found[len(found)-1].Purpose = purpose(q).String()
		}
	}
	slices.SortStableFunc(found, func(a, b Queue) int { return cmp.Compare(b.Ready+b.Unacked, a.Ready+a.Unacked) })
	return found
}

// hasLetters reports whether dead letters are at the queue's head or tail.
func hasLetters(q *broker.Queue) bool {
	for range lettersAtEnds(q) {
		return true
	}
	return false
}

// lettersAtEnds are the dead letters at the queue's head and tail.
func lettersAtEnds(q *broker.Queue) iter.Seq[Letter] {
	return func(yield func(Letter) bool) {
		if ready, _, _ := q.Messages.Counts(); ready == 0 {
			return
		}
		for _, tail := range []bool{false, true} {
			page, _ := q.Messages.Browse(broker.Browse{FromTail: tail, Count: sampled, State: queue.Ready, Unnoticed: true}) // a deleted queue has none
			for i := range page {
				if !bytes.Contains(page[i].Message.Properties, []byte(deathHeader)) { // most have none, and reading them all takes long
					continue
				}
				if l := LetterOf(&page[i], deathHeaders); len(l.Deaths) > 0 && !yield(l) {
					return
				}
			}
		}
	}
}

// Source is a queue that dead letters come from, and its dead-letter exchange now.
type Source struct {
	Queue, Exchange string
	Missing         bool // there is no such exchange
}

// Sources are the queues that the dead letters at the head and tail of q come from, and when the newest of these died.
func Sources(vh *broker.VHost, q *broker.Queue) (list []Source, newest time.Time) {
	for l := range lettersAtEnds(q) {
		if at := l.last().Time; at.After(newest) {
			newest = at
		}
		s := Source{Queue: l.last().Queue}
		if from, err := vh.Queues.Get(s.Queue); err == nil {
			s.Exchange, _, _ = from.DeadLettersTo()
		}
		_, err := vh.Exchanges.Get(s.Exchange)
		if s.Missing = err != nil; !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list, newest
}
