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

// Risk is what is expected of a queue whose messages are about to miss their deadlines.
type Risk struct {
	VHost, Queue string
	// Count messages will miss, the first and the last of them at these Unix ms.
	Count                           int64
	FirstDeadlineAt, LastDeadlineAt int64
	// Reason says what that is concluded from, for a person; may be empty.
	Reason string
}

// AtRisk says that messages of a queue will miss their deadlines, until Safe; saying it
// again brings the counts up to date for when it is told again.
func (a *Alerts) AtRisk(r Risk) {
	a.begin(key{kind: AtRisk, vhost: r.VHost, queue: r.Queue}, r.Reason,
		Tally{Count: r.Count, FirstDeadlineAt: r.FirstDeadlineAt, LastDeadlineAt: r.LastDeadlineAt})
}

// Safe says that no message of the queue is at risk any more.
func (a *Alerts) Safe(vhost, queue string) { a.end(key{kind: AtRisk, vhost: vhost, queue: queue}) }

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
	if a.incidents[k] == nil && len(a.incidents) >= maxIncidents && k.queue != "" {
		a.metrics.suppressed.WithLabelValues("overflow").Inc() // its end could not be told apart
		return
	}
	i, _ := a.incident(k)
	i.state, i.lasts, i.detail, i.Tally, i.lastAt = true, true, detail, t, time.Now()
}

// end says that it is over. That is told at once, but no sooner after what was told
// before than the group waits: a state that comes and goes is not told each time.
func (a *Alerts) end(k key) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.incidents[k]
	if i == nil || !i.lasts {
		return
	}
	i.lasts, i.lastAt, i.detail, i.Tally = false, time.Now(), "", Tally{}
	g := i.group
	if at := g.toldAt.Add(g.rule.wait); i.told && at.After(i.lastAt) {
		g.tellAt = at
	} else {
		g.tellAt = i.lastAt
	}
	a.wake()
}
