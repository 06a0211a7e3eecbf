package alert

import "time"

// Kind says what happened.
type Kind uint8

const (
	// DeadlineMissed: messages expired before anybody consumed them.
	DeadlineMissed Kind = iota
	// DeadlineFiredLate: they left their queue later than the threshold allows.
	DeadlineFiredLate
	// DeadLetterUnroutable: they expired and their dead-letter exchange is missing
	// or routes them nowhere.
	DeadLetterUnroutable
	// ScheduleDegraded: deadlines are met, but without the schedule in Redis.
	ScheduleDegraded
	// InstanceSilent: another instance gives no sign of life, and deadlines of it are
	// due.
	InstanceSilent
	// NotificationsDropped: a sink was too slow to tell everything.
	NotificationsDropped
)

// kinds holds the name (label alertname), the event in the log, and the severity
// of each Kind.
var kinds = [...]struct{ name, event, severity string }{
	DeadlineMissed:       {"CurfewDeadlineMissed", "deadline_missed", "warning"},
	DeadlineFiredLate:    {"CurfewDeadlineFiredLate", "deadline_fired_late", "critical"},
	DeadLetterUnroutable: {"CurfewDeadLetterUnroutable", "dead_letter_unroutable", "critical"},
	ScheduleDegraded:     {"CurfewScheduleDegraded", "schedule_degraded", "warning"},
	InstanceSilent:       {"CurfewInstanceSilent", "instance_silent", "critical"},
	NotificationsDropped: {"CurfewNotificationsDropped", "notifications_dropped", "warning"},
}

// String is the name of the alert, as in the label alertname.
func (k Kind) String() string { return kinds[k].name }

// Event says that something happened to messages of one queue.
type Event struct {
	Kind   Kind
	VHost  string
	Queue  string
	Action string // what became of them: "dropped", "dead_lettered", "parked"
	Tally
}

// Tally adds up what happened to a number of messages.
type Tally struct {
	Count           int64
	FirstDeadlineAt int64 // Unix ms, the earliest of their deadlines
	LastDeadlineAt  int64 // Unix ms, the latest
	WorstMillis     int64 // the largest lateness
}

// Add counts one message.
func (t *Tally) Add(deadlineAt, latenessMillis int64) {
	t.merge(Tally{1, deadlineAt, deadlineAt, latenessMillis})
}

func (t *Tally) merge(o Tally) {
	if t.Count == 0 {
		*t = o
		return
	}
	t.Count += o.Count
	t.FirstDeadlineAt = min(t.FirstDeadlineAt, o.FirstDeadlineAt)
	t.LastDeadlineAt = max(t.LastDeadlineAt, o.LastDeadlineAt)
	t.WorstMillis = max(t.WorstMillis, o.WorstMillis)
}

// notification is one thing to tell through a sink.
type notification struct {
	key
	Tally
	detail   string // words, for a state
	resolved bool
	startsAt time.Time
	endsAt   time.Time // zero while firing
}

// key identifies a group.
type key struct {
	kind                 Kind
	vhost, queue, action string
	peer                 string // the silent instance
}

// otherQueues stands for every queue that found no room among the groups.
const otherQueues = "_other"
