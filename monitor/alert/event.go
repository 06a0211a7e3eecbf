package alert

import (
	"slices"
	"strings"
)

// Kind says what happened.
type Kind uint8

const (
	// DeadlineMissed: messages expired before anybody consumed them.
	DeadlineMissed Kind = iota
	// AtRisk: by what is known now, messages of a queue will miss their deadlines.
	AtRisk
	// HeldPastDeadline: consumers hold messages, unacked, past their deadlines.
	HeldPastDeadline
	// DeadlineFiredLate: messages left their queue later than the threshold allows.
	DeadlineFiredLate
	// DeadLetterUnroutable: messages expired and their dead-letter exchange is missing
	// or routes them nowhere; they are parked.
	DeadLetterUnroutable
	// ScheduleDegraded: deadlines are met, but without the schedule in Redis.
	ScheduleDegraded
	// InstanceSilent: another instance gives no sign of life, and deadlines of it are
	// due.
	InstanceSilent
	// NotificationsDropped: a sink was too slow to tell everything.
	NotificationsDropped
	// Watchdog fires for as long as this process is well; that it stops is the news.
	Watchdog
	// Test: somebody tries whether a sink works.
	Test
)

// kinds holds the name (label alertname), the event in rules and logs, the severity
// and the CloudEvents type of each Kind.
var kinds = [...]struct{ name, event, severity, cloudEvent string }{
	DeadlineMissed:       {"CurfewDeadlineMissed", "deadline_missed", "warning", "deadline.missed"},
	AtRisk:               {"CurfewDeadlineAtRisk", "at_risk", "warning", "deadline.at_risk"},
	HeldPastDeadline:     {"CurfewHeldPastDeadline", "held_past_deadline", "warning", "deadline.held"},
	DeadlineFiredLate:    {"CurfewDeadlineFiredLate", "deadline_fired_late", "critical", "deadline.fired_late"},
	DeadLetterUnroutable: {"CurfewDeadLetterUnroutable", "dead_letter_unroutable", "critical", "deadletter.unroutable"},
	ScheduleDegraded:     {"CurfewScheduleDegraded", "schedule_degraded", "warning", "schedule.degraded"},
	InstanceSilent:       {"CurfewInstanceSilent", "instance_silent", "critical", "instance.silent"},
	NotificationsDropped: {"CurfewNotificationsDropped", "notifications_dropped", "warning", "notifications.dropped"},
	Watchdog:             {"CurfewWatchdog", "watchdog", "none", "watchdog"},
	Test:                 {"CurfewTest", "test", "info", "test"},
}

// ruled is how many kinds, from the first, rules are about; the others go everywhere.
const ruled = int(NotificationsDropped)

// String is the name of the alert, as in the label alertname.
func (k Kind) String() string { return kinds[k].name }

// kindOf finds the kind that rules call event.
func kindOf(event string) (Kind, bool) {
	i := slices.IndexFunc(kinds[:ruled], func(k struct{ name, event, severity, cloudEvent string }) bool { return k.event == event })
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

// Event says that something happened to messages of one queue.
type Event struct {
	Kind   Kind
	VHost  string
	Queue  string
	Action string // what became of them: "dropped", "dead_lettered", "parked"; may be empty
	// Again: what is told lasts since it was told before, so its messages count only
	// if that has been forgotten.
	Again bool
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
