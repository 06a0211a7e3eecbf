package incident

import (
	"slices"
	"strings"
	"sync"
	"time"

	"curfew/broker/deadline"
)

// Kind is what happens to the messages of a queue, and is counted here.
type Kind uint8

const (
	// Expired: messages expired unconsumed.
	Expired Kind = iota
	// ExpiredLate: messages expired late, by Curfew's doing: not where RabbitMQ expires them by itself.
	ExpiredLate
	// LockHeld: operations held the lock of the queue for long.
	LockHeld
)

// Event is something that happened to one queue or its messages.
type Event struct {
	Kind   Kind
	VHost  string
	Queue  string
	Action string // what became of them: "dropped", "dead_lettered", "parked"; may be empty
	Hold   Hold   // of LockHeld
	Stats
}

// Hold is what held a queue's lock, and for how long.
type Hold struct {
	Operation string // in a word or two
	For       time.Duration
}

// Stats add up what happened to a number of messages, or of holds of a lock, which have no deadlines.
type Stats struct {
	Count           int64
	FirstDeadlineAt int64 // Unix ms, the earliest of their deadlines
	WorstMillis     int64 // the largest lateness
	Dropped, Parked int64 // of Count; tallies fill them in
}

// Add counts one message. due is its deadline by the wall clock.
func (t *Stats) Add(due deadline.Instant, lateness time.Duration) {
	t.merge(Stats{Count: 1, FirstDeadlineAt: due.UnixMilli(), WorstMillis: int64(deadline.RoundUp(lateness))})
}

func (t *Stats) merge(o Stats) {
	if t.Count == 0 {
		*t = o
		return
	}
	t.Count, t.Dropped, t.Parked = t.Count+o.Count, t.Dropped+o.Dropped, t.Parked+o.Parked
	t.FirstDeadlineAt = min(t.FirstDeadlineAt, o.FirstDeadlineAt)
	t.WorstMillis = max(t.WorstMillis, o.WorstMillis)
}

// Tally is what has happened to one queue since it began: without a pause of recent or longer or, where messages expired, in one incident.
type Tally struct {
	Event
	Began, Last time.Time
	Losing      time.Time // when the first was dropped; zero: none was
	in          string    // the ID of the incident for which it is kept, though it is past, in case more follows; "": it goes on
}

const (
	// recent is how long what happened counts as going on.
	recent = time.Minute
	// starvedFor is how long a time without a processor counts. It is longer than what was late meanwhile goes on.
	starvedFor = recent + 15*time.Second
	// maxTallies bounds the tallies. What finds no room is added up per Kind under the queue otherQueues.
	maxTallies  = 1000
	otherQueues = "_other"
	// serverNamed begins the names that the broker makes up. Such queues come and go with each client, and have half of the room at most.
	serverNamed = "amq.gen-"
)

// tallies count events by kind and queue. Safe for concurrent use.
type tallies struct {
	mu  sync.Mutex
	all map[tallyKey]*Tally
}

type tallyKey struct {
	kind         Kind
	vhost, queue string
}

// record adds e. It does not allocate for a queue that is known.
func (t *tallies) record(e Event) {
	now := time.Now()
	var losing time.Time
	switch e.Action {
	case deadline.Dropped.String():
		e.Dropped, losing = e.Count, now
	case deadline.Parked.String():
		e.Parked = e.Count
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= maxTallies/2 && strings.HasPrefix(e.Queue, serverNamed) {
		e.Queue = serverNamed + "*"
	}
	k := tallyKey{e.Kind, e.VHost, e.Queue}
	of := t.all[k]
	if of == nil && len(t.all) >= maxTallies {
		e.VHost, e.Queue = otherQueues, otherQueues
		k = tallyKey{e.Kind, e.VHost, e.Queue}
		of = t.all[k]
	}
	if of == nil {
		t.all[k] = &Tally{Event: e, Began: now, Last: now, Losing: losing}
		return
	}
	of.merge(e.Stats)
	of.Last, of.in = now, ""
	if of.Losing.IsZero() {
		of.Losing = losing
	}
	if of.Dropped == 0 || e.Dropped > 0 {
		of.Action = e.Action
	}
	if e.Hold.For > of.Hold.For {
		of.Hold = e.Hold
	}
}

// going are those that go on, without those whose cause is mended. Half of the room at most is for those that are over and kept for their incidents, by queue.
func (t *tallies) going(now time.Time, mended func(*Tally) bool, incidents map[QueueName]string) (list []Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, of := range t.all {
		in, is := incidents[QueueName{k.vhost, k.queue}]
		switch {
		case of.in == "" && now.Sub(of.Last) < recent && !mended(of):
			list = append(list, *of)
		case is && (of.in == "" || of.in == in) && k.kind == Expired && len(t.all) <= maxTallies/2:
			of.in, of.Losing = in, time.Time{}
		default:
			delete(t.all, k)
		}
	}
	slices.SortFunc(list, func(a, b Tally) int { return a.Began.Compare(b.Began) })
	return list
}

// expiries are those of messages that expired.
func (t *tallies) expiries() (list []Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.all {
		if of.Kind == Expired {
			list = append(list, *of)
		}
	}
	return list
}
