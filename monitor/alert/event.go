package alert

import (
	"slices"
	"strings"
	"time"

	"curfew/broker/deadline"
)

// Kind is what happened.
type Kind uint8

const (
	// DeadlineMissed: messages expired unconsumed.
	DeadlineMissed Kind = iota
	// AtRisk: by the forecast, messages of a queue will expire.
	AtRisk
	// HeldPastDeadline: consumers hold messages, unacked, past their deadlines.
	HeldPastDeadline
	// DeadlineFiredLate: messages expired with a lateness above the threshold.
	DeadlineFiredLate
	// DeadLetterUnroutable: dead letters were parked, since their dead-letter exchange is
	// missing or routes them nowhere.
	DeadLetterUnroutable
	// ScheduleDegraded: deadlines are met, but without the schedule in Redis.
	ScheduleDegraded
	// QueueLockedLong: operations held the lock of a queue for long. One hold alone is not notified
	// of, since the system may just have given the process no processor.
	QueueLockedLong
	// ManyAlerts: more begins than is notified of at once.
	ManyAlerts
	// Watchdog fires for as long as this process is well. When it stops, something is
	// wrong.
	Watchdog
	// Test: somebody tests a sink.
	Test
)

// kinds holds for each Kind its name (label alertname), its event in rules and logs, its severity, what it means for messages, and its
// subject in a sentence.
var kinds = [...]struct {
	name, event, severity string
	harm                  harm
	subject               string
}{
	DeadlineMissed:       {"CurfewDeadlineMissed", "deadline_missed", "warning", messagesDied, "messages expired unconsumed"},
	AtRisk:               {"CurfewDeadlineAtRisk", "at_risk", "warning", messagesAtRisk, "messages are at risk of expiring"},
	HeldPastDeadline:     {"CurfewHeldPastDeadline", "held_past_deadline", "warning", messagesAtRisk, "consumers hold messages past their deadlines"},
	DeadlineFiredLate:    {"CurfewDeadlineFiredLate", "deadline_fired_late", "critical", messagesDied, "messages expired late"},
	DeadLetterUnroutable: {"CurfewDeadLetterUnroutable", "dead_letter_unroutable", "critical", messagesDied, "dead letters had nowhere to go and were parked"},
	ScheduleDegraded:     {"CurfewScheduleDegraded", "schedule_degraded", "warning", noMessages, "the schedule in Redis is degraded"},
	QueueLockedLong:      {"CurfewQueueLockedLong", "queue_locked_long", "warning", noMessages, "operations held the lock for long"},
	ManyAlerts:           {"CurfewManyAlerts", "many_alerts", "warning", noMessages, "more alerts fire than are sent at once"},
	Watchdog:             {"CurfewWatchdog", "watchdog", "none", noMessages, "deadlines are watched"},
	Test:                 {"CurfewTest", "test", "info", noMessages, "test alert"},
}

// ruled is the number of kinds, from the first on, that rules can match. The others go to every sink.
const ruled = int(ManyAlerts)

// String is the name of the alert, as in the label alertname.
func (k Kind) String() string { return kinds[k].name }

// kindOf finds the kind that rules call event.
func kindOf(event string) (Kind, bool) {
	i := slices.Index(Events(), event)
	return Kind(max(i, 0)), i >= 0
}

// Events lists the events that rules and silences may name.
func Events() []string {
	names := make([]string, ruled)
	for i := range names {
		names[i] = kinds[i].event
	}
	return names
}

// eventNames is Events as text.
func eventNames() string { return strings.Join(Events(), ", ") }

// Event is something that happened to one queue or its messages.
type Event struct {
	Kind   Kind
	VHost  string
	Queue  string
	Action string // what became of them: "dropped", "dead_lettered", "parked"; may be empty
	// Again: it was recorded before and still lasts, so its messages count only if that
	// record has been forgotten.
	Again bool
	Hold  Hold // of QueueLockedLong
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
	LastDeadlineAt  int64 // Unix ms, the latest
	WorstMillis     int64 // the largest lateness
}

// Add counts one message. due is its deadline by the wall clock.
func (t *Stats) Add(due deadline.Instant, lateness time.Duration) {
	at := due.UnixMilli()
	t.merge(Stats{1, at, at, int64(deadline.RoundUp(lateness))})
}

func (t *Stats) merge(o Stats) {
	if t.Count == 0 {
		*t = o
		return
	}
	t.Count += o.Count
	t.FirstDeadlineAt = min(t.FirstDeadlineAt, o.FirstDeadlineAt)
	t.LastDeadlineAt = max(t.LastDeadlineAt, o.LastDeadlineAt)
	t.WorstMillis = max(t.WorstMillis, o.WorstMillis)
}
