package alert

import (
	"fmt"
	"strings"
)

// Degraded records that the schedule is degraded and why, until Restored.
func (a *Alerts) Degraded(reason string) {
	a.begin(key{kind: ScheduleDegraded}, reason, Stats{})
}

// Restored records that the schedule is complete again. A degradation shorter than the
// group wait makes no notification.
func (a *Alerts) Restored() { a.end(key{kind: ScheduleDegraded}) }

// Risk is the forecast for a queue at risk.
type Risk struct {
	VHost, Queue string
	// Count messages will expire, the first and the last of them at these Unix ms.
	Count                           int64
	FirstDeadlineAt, LastDeadlineAt int64
	// Reason explains the forecast to a person; may be empty.
	Reason string
}

// AtRisk records that messages of a queue are at risk, until Safe. Another call brings the
// counts up to date for the next notification.
func (a *Alerts) AtRisk(r Risk) {
	a.begin(key{kind: AtRisk, vhost: r.VHost, queue: r.Queue}, r.Reason,
		Stats{Count: r.Count, FirstDeadlineAt: r.FirstDeadlineAt, LastDeadlineAt: r.LastDeadlineAt})
}

// Safe records that messages of the queue are no longer at risk.
func (a *Alerts) Safe(vhost, queue string) { a.end(key{kind: AtRisk, vhost: vhost, queue: queue}) }

// SilentInstance is what is known of another instance that gives no sign of life.
type SilentInstance struct {
	Peer string // its name
	// Due deadlines have passed in its schedule.
	Due        int64
	OldestAt   int64 // Unix ms, the earliest deadline among them
	LateMillis int64 // how long ago that was
	// Queues are those with most of them, the most first.
	Queues []QueueDue
}

// QueueDue is how many deadlines are due in a queue.
type QueueDue struct {
	VHost, Queue string
	Count        int64
}

// Silent records that an instance is silent, until Heard. Another call brings the counts up
// to date for the next notification. Each instance makes a notification of its own, so the
// caller bounds how many there are.
func (a *Alerts) Silent(s SilentInstance) {
	a.begin(key{kind: InstanceSilent, peer: s.Peer}, s.queues(),
		Stats{Count: s.Due, FirstDeadlineAt: s.OldestAt, WorstMillis: s.LateMillis})
}

// Heard records that the instance is back, or that nothing of it is due any longer.
func (a *Alerts) Heard(peer string) { a.end(key{kind: InstanceSilent, peer: peer}) }

func (s SilentInstance) queues() string {
	parts := make([]string, len(s.Queues))
	for i, q := range s.Queues {
		parts[i] = fmt.Sprintf("%d in queue %q of vhost %q", q.Count, q.Queue, q.VHost)
	}
	return strings.Join(parts, ", ")
}

func (a *Alerts) begin(k key, detail string, t Stats) {
	if a != nil {
		a.tracker.begin(k, detail, t)
	}
}

func (a *Alerts) end(k key) {
	if a != nil {
		a.tracker.end(k)
	}
}
