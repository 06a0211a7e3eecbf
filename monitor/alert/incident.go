package alert

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker/deadline"
)

// key identifies an incident: what happens, and to which queue.
type key struct {
	kind         Kind
	vhost, queue string
}

// otherQueues stands for all queues that found no room among the incidents.
const otherQueues = "_other"

// incident is what has happened to one queue, or a state that lasts, since it began.
type incident struct {
	key
	Stats             // since it began; of a state, at present
	rule     *rule    // that decides on its notifications
	action   string   // what became of the messages; dropped, if any was
	detail   string   // of a state, in words
	held     *held    // who holds the messages; nil: not known
	longest  Hold     // of the queue's lock
	state    bool     // it ends when that is recorded, not when nothing happens
	lasts    bool     // a state that has not ended
	again    bool     // a message is held for longer than heldAgain
	notified bool     // a notification said that it fires, so one must say that it is over
	withheld withheld // why it was not notified of
	startsAt time.Time
	lastAt   time.Time // the last event
}

// withheld is why no notification is sent of an incident that has reached what its rule asks for,
// as a label of the metric.
type withheld string

const (
	bySilence withheld = "silence"
	byRate    withheld = "rate_limit"
)

const (
	// settle is how long an incident collects before it is notified of, so that the first count
	// says something, and what lasts for less than that is not notified of.
	settle = time.Second
	// quiet is how long nothing must happen for an incident to be over.
	quiet = time.Minute
	// heldAgain is how often a message that a consumer holds past its deadline is recorded.
	heldAgain = 30 * time.Second
	// heldLongAgain is how long after the first a queue's lock must be held for long again.
	heldLongAgain = time.Second
)

// overAt is when the incident is over if nothing more happens. A state has no such time.
func (i *incident) overAt() time.Time {
	if i.kind == HeldPastDeadline {
		return i.lastAt.Add(5 * heldAgain / 2)
	}
	return i.lastAt.Add(quiet)
}

// over reports whether the incident has ended by now.
func (i *incident) over(now time.Time) bool {
	if i.state {
		return !i.lasts
	}
	return !now.Before(i.overAt())
}

// reached reports whether it is bad enough for a notification.
func (i *incident) reached() bool {
	if i.state && i.Count == 0 {
		return true
	}
	if i.kind == QueueLockedLong && i.lastAt.Sub(i.startsAt) < heldLongAgain {
		return false
	}
	if i.held != nil && i.held.count == 0 && !i.again { // all have come back
		return false
	}
	return i.count() >= i.rule.count && (i.rule.lateness == 0 || lateness(i.WorstMillis) >= i.rule.lateness)
}

// count is how many messages it is about: those held now, if that is known, else all since it began.
func (i *incident) count() int64 {
	if i.held != nil && i.held.count > 0 {
		return i.held.count
	}
	return i.Count
}

// add adds e to what has happened.
func (i *incident) add(e Event, known bool) {
	if e.Again && known { // its messages are counted already
		i.WorstMillis = max(i.WorstMillis, e.WorstMillis)
	} else {
		i.merge(e.Stats)
	}
	i.lastAt, i.again = time.Now(), i.again || e.Again
	if i.action == "" || e.Action == deadline.Dropped.String() {
		i.action = e.Action
	}
	if e.Hold.For > i.longest.For {
		i.longest = e.Hold
	}
}

// alert returns i as it is at an instant.
func (i *incident) alert(at time.Time) *alert {
	a := &alert{key: i.key, Stats: i.Stats, rule: i.rule, action: i.action, detail: i.detail, at: at, startsAt: i.startsAt}
	if i.held != nil {
		a.Count, a.detail, a.WorstMillis = i.held.count, i.held.holders, max(a.WorstMillis, i.held.worst)
	}
	if i.longest.For > 0 {
		a.longest, a.detail = i.longest, fmt.Sprintf("the longest, by the operation %q, took %s", i.longest.Operation, i.longest.text())
	}
	return a
}

// ended returns i as it is when it is over.
func (i *incident) ended(at time.Time) *alert {
	a := i.alert(at)
	a.endsAt = at
	return a
}

// alert is an incident at an instant: what sinks are sent when it begins, and when it is over.
type alert struct {
	key
	Stats
	rule     *rule
	action   string
	detail   string
	longest  Hold
	at       time.Time
	startsAt time.Time
	endsAt   time.Time // zero while it fires
}

func (a *alert) resolved() bool { return !a.endsAt.IsZero() }

func (a *alert) status() string {
	if a.resolved() {
		return "resolved"
	}
	return "firing"
}

func (a *alert) severity() string { return a.rule.severityOf(a.kind) }

// labels identify the alert.
func (a *alert) labels() map[string]string {
	l := map[string]string{"alertname": a.kind.String()}
	if a.queue != "" {
		l["vhost"], l["queue"] = a.vhost, a.queue
	}
	return l
}

// fingerprint is the same from the beginning of an alert to its end.
func (a *alert) fingerprint() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(format(a.labels())))
	return fmt.Sprintf("%016x", h.Sum64())
}

// format writes labels the way Alertmanager writes a group key.
func format(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+strconv.Quote(labels[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (a *alert) annotations() map[string]string {
	m := map[string]string{"summary": a.summary()}
	if a.action != "" {
		m["action"] = a.action
	}
	if a.kind == HeldPastDeadline && a.detail != "" {
		m["holders"] = a.detail
	}
	if a.Count == 0 {
		return m
	}
	m["count"] = strconv.FormatInt(a.Count, 10)
	if a.FirstDeadlineAt != 0 {
		m["first_deadline"] = stamp(a.FirstDeadlineAt)
	}
	if a.LastDeadlineAt != 0 {
		m["last_deadline"] = stamp(a.LastDeadlineAt)
	}
	if a.kind == QueueLockedLong {
		m["operation"], m["longest_hold"] = a.longest.Operation, a.longest.text()
	} else if a.kind != AtRisk && a.kind != ManyAlerts {
		m["worst_lateness"] = lateness(a.WorstMillis).String()
	}
	return m
}

func lateness(millis int64) time.Duration { return time.Duration(millis) * time.Millisecond }

func (h Hold) text() string { return h.For.Round(time.Millisecond).String() }

func stamp(unixMillis int64) string {
	return time.UnixMilli(unixMillis).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// none reports whether consumers no longer hold any message past its deadline. The alert is about to be over.
func (a *alert) none() bool { return a.kind == HeldPastDeadline && a.Count == 0 && a.detail != "" }

// summary is one sentence for a person.
func (a *alert) summary() string {
	return a.says(fmt.Sprintf(" in queue %q of vhost %q", a.queue, a.vhost))
}

// finding is the summary without the queue, for lists that have it in another place.
func (a *alert) finding() string { return a.says("") }

// says is the summary; where follows the number of messages.
func (a *alert) says(where string) string {
	text := kinds[a.kind].subject
	switch {
	case a.resolved():
		text += ": over"
		if a.queue != "" && a.kind != AtRisk {
			text += fmt.Sprintf(", %d%s", a.Count, where)
		} else if a.queue != "" && where != "" {
			text += "," + where
		}
		return text
	case a.kind == ManyAlerts:
		return fmt.Sprintf("%s: %d more; see curfew alert ls", text, a.Count)
	case a.queue == "":
		return text + ": " + a.detail
	case a.none():
		return "consumers held messages past their deadlines" + where + ": " + a.detail
	}
	text = fmt.Sprintf("%s: %d%s", text, a.Count, where)
	if a.detail != "" {
		text += "; " + a.detail
	}
	return text
}
