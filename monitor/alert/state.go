package alert

import (
	"fmt"
	"strings"
	"time"
)

// Degraded says that the schedule is degraded and why, until Restored.
func (a *Alerts) Degraded(reason string) {
	a.begin(key{kind: ScheduleDegraded}, reason, Tally{})
}

// Restored says that the schedule is whole. A degradation shorter than the group
// wait is not told at all.
func (a *Alerts) Restored() { a.end(key{kind: ScheduleDegraded}) }

// Silence is what is known of another instance that gives no sign of life.
type Silence struct {
	Peer string // its name
	// Due deadlines have passed in its schedule.
	Due        int64
	OldestAt   int64 // Unix ms, the earliest deadline among them
	LateMillis int64 // how long ago that was
	// Queues are those with most of them, the most first.
	Queues []QueueDue
}

// QueueDue says how many deadlines are due in a queue.
type QueueDue struct {
	VHost, Queue string
	Count        int64
}

// Silent says that an instance is silent, until Heard; saying it again brings the
// counts up to date for when it is told again. Each instance is told for itself, so
// the caller bounds how many there are.
func (a *Alerts) Silent(s Silence) {
	a.begin(key{kind: InstanceSilent, peer: s.Peer}, s.queues(),
		Tally{Count: s.Due, FirstDeadlineAt: s.OldestAt, WorstMillis: s.LateMillis})
}

// Heard says that the instance is back, or has nothing due any more.
func (a *Alerts) Heard(peer string) { a.end(key{kind: InstanceSilent, peer: peer}) }

func (s Silence) queues() string {
	parts := make([]string, len(s.Queues))
	for i, q := range s.Queues {
		parts[i] = fmt.Sprintf("%d in queue %q of vhost %q", q.Count, q.Queue, q.VHost)
	}
	return strings.Join(parts, ", ")
}

// begin says that a state lasts, and what is known of it.
func (a *Alerts) begin(k key, detail string, t Tally) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.group(k)
	g.on, g.detail, g.Tally = true, detail, t
}

// end says that it is over.
func (a *Alerts) end(k key) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := a.groups[k]; g != nil && g.on {
		g.on, g.Tally, g.tellAt = false, Tally{}, time.Now()
		a.wake()
	}
}
