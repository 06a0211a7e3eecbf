package alert

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// alert is one incident in a notification.
type alert struct {
	key
	Stats
	detail   string // words, for a state
	severity string
	startsAt time.Time
	endsAt   time.Time // zero while firing
	fresh    bool      // there is news of it
}

// notification is what sinks are sent: a group as it is now.
type notification struct {
	key      groupKey
	rule     *rule
	at       time.Time
	alerts   []alert // those firing first, then by messages, the most first
	firing   int     // how many of them are firing
	total    Stats   // of those, or of all if none is firing
	startsAt time.Time
	single   uint64 // the number of the notification, if it is of a single message; otherwise 0
}

func newNotification(r *rule, k groupKey, at time.Time) *notification {
	return &notification{key: k, rule: r, at: at}
}

// add appends an alert. The total is that of the firing ones as soon as there is one.
func (n *notification) add(a alert) {
	if a.endsAt.IsZero() && n.firing == 0 {
		n.total = Stats{}
	}
	if a.endsAt.IsZero() {
		n.firing++
	}
	if a.endsAt.IsZero() || n.firing == 0 {
		n.total.merge(a.Stats)
	}
	if n.startsAt.IsZero() || a.startsAt.Before(n.startsAt) {
		n.startsAt = a.startsAt
	}
	n.alerts = append(n.alerts, a)
}

// close sorts the alerts.
func (n *notification) close() {
	slices.SortFunc(n.alerts, func(a, b alert) int {
		return cmp.Or(strings.Compare(a.status(), b.status()), cmp.Compare(b.Count, a.Count),
			strings.Compare(a.vhost, b.vhost), strings.Compare(a.queue, b.queue))
	})
}

func (n *notification) resolved() bool { return n.firing == 0 }

func (n *notification) status() string {
	if n.resolved() {
		return "resolved"
	}
	return "firing"
}

func (a *alert) status() string {
	if a.endsAt.IsZero() {
		return "firing"
	}
	return "resolved"
}

// severity is that of the group: its alerts are of one rule and kind.
func (n *notification) severity() string { return n.rule.severityOf(n.key.kind) }

// queues counts the queues the alerts are about.
func (n *notification) queues() int {
	seen := make(map[[2]string]struct{}, len(n.alerts))
	for i := range n.alerts {
		if a := &n.alerts[i]; a.queue != "" && (a.status() == n.status()) {
			seen[[2]string{a.vhost, a.queue}] = struct{}{}
		}
	}
	return len(seen)
}

// labels identify the alert.
func (a *alert) labels() map[string]string {
	l := map[string]string{"alertname": a.kind.String()}
	if a.queue != "" {
		l["vhost"], l["queue"] = a.vhost, a.queue
	}
	if a.action != "" {
		l["action"] = a.action
	}
	return l
}

// labels are those of the group.
func (n *notification) labels() map[string]string {
	l := map[string]string{"alertname": n.key.kind.String()}
	for name, value := range map[string]string{"vhost": n.key.vhost, "queue": n.key.queue} {
		if value != "" {
			l[name] = value
		}
	}
	return l
}

// groupName is the same for every notification of a group.
func (n *notification) groupName() string {
	name := n.key.rule + "/" + format(n.labels())
	if n.single != 0 {
		name += fmt.Sprintf("/%x.%d", n.at.UnixNano(), n.single)
	}
	return name
}

func (n *notification) fingerprint() string { return fingerprint(n.groupName()) }

func (a *alert) fingerprint() string { return fingerprint(format(a.labels())) }

func fingerprint(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
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
	addStats(m, a.kind, a.Stats)
	if a.kind == HeldPastDeadline && a.detail != "" {
		m["holders"] = a.detail
	}
	return m
}

// addStats adds the counts of a kind to annotations.
func addStats(m map[string]string, k Kind, t Stats) {
	if t.Count == 0 {
		return
	}
	m["count"] = strconv.FormatInt(t.Count, 10)
	if t.FirstDeadlineAt != 0 {
		m["first_deadline"] = stamp(t.FirstDeadlineAt)
	}
	if t.LastDeadlineAt != 0 {
		m["last_deadline"] = stamp(t.LastDeadlineAt)
	}
	if k != AtRisk && k != NotificationsDropped {
		m["worst_lateness"] = lateness(t.WorstMillis).String()
	}
}

func lateness(millis int64) time.Duration { return time.Duration(millis) * time.Millisecond }

func stamp(unixMillis int64) string {
	return time.UnixMilli(unixMillis).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// annotations are those of the whole group.
func (n *notification) annotations() map[string]string {
	m := map[string]string{"summary": n.summary()}
	addStats(m, n.key.kind, n.total)
	if top := n.top(); top != "" && n.key.queue == "" {
		m["top_queues"] = top
	}
	return m
}

// topQueues is how many queues a summary names.
const topQueues = 5

// offender is one of the queues with the most messages.
type offender struct {
	vhost, queue string
	Stats
}

// offenders are the queues with the most messages, in that order.
func (n *notification) offenders() (list []offender) {
	at := make(map[[2]string]int)
	for i := range n.alerts {
		a := &n.alerts[i]
		if a.queue == "" || a.status() != n.status() {
			continue
		}
		k, known := at[[2]string{a.vhost, a.queue}]
		if !known {
			k, at[[2]string{a.vhost, a.queue}] = len(list), len(list)
			list = append(list, offender{vhost: a.vhost, queue: a.queue})
		}
		list[k].merge(a.Stats)
	}
	slices.SortStableFunc(list, func(a, b offender) int { return cmp.Compare(b.Count, a.Count) })
	return list[:min(len(list), topQueues)]
}

// top names the queues with the most messages.
func (n *notification) top() string {
	var parts []string
	for _, o := range n.offenders() {
		text := fmt.Sprintf("queue %q of vhost %q", o.queue, o.vhost)
		if o.Count > 0 {
			text = fmt.Sprintf("%d in %s", o.Count, text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// summary is one sentence for a person.
func (n *notification) summary() string {
	if len(n.alerts) == 1 {
		return n.alerts[0].summary()
	}
	text := subject(n.key.kind) + ": "
	if n.resolved() {
		text += "over, "
	}
	if n.total.Count > 0 { // a state that is over has no count
		text += fmt.Sprintf("%d ", n.total.Count)
	}
	text += fmt.Sprintf("in %d queues, ", n.queues())
	switch {
	case n.queues() <= topQueues:
	case n.total.Count > 0:
		text += "most of them "
	default:
		text += "among them "
	}
	return text + n.top()
}

// none reports whether consumers no longer hold any message past its deadline. The alert is about to be over.
func (a *alert) none() bool { return a.kind == HeldPastDeadline && a.Count == 0 && a.detail != "" }

func (a *alert) summary() string {
	return a.says(fmt.Sprintf(" in queue %q of vhost %q", a.queue, a.vhost))
}

// finding is the summary without the queue, for lists that have it in another place.
func (a *alert) finding() string { return a.says("") }

// says is the summary; where follows the number of messages.
func (a *alert) says(where string) string {
	text := subject(a.kind)
	if !a.endsAt.IsZero() {
		text += ": over"
		if a.queue != "" && a.kind != AtRisk {
			text += fmt.Sprintf(", %d%s", a.Count, where)
		} else if a.queue != "" && where != "" {
			text += "," + where
		}
		return text
	}
	switch a.kind {
	case ScheduleDegraded, Test, Watchdog:
		return text + ": " + a.detail
	case NotificationsDropped:
		return fmt.Sprintf("%s: %d", text, a.Count)
	case AtRisk, HeldPastDeadline:
		if a.none() {
			return "consumers held messages past their deadlines" + where + ": " + a.detail
		}
		text = fmt.Sprintf("%s: %d%s", text, a.Count, where)
		if a.detail != "" {
			text += "; " + a.detail
		}
		return text
	default:
		return fmt.Sprintf("%s: %d%s", text, a.Count, where)
	}
}

func subject(k Kind) string {
	switch k {
	case DeadlineMissed:
		return "messages expired unconsumed"
	case AtRisk:
		return "messages are at risk of expiring"
	case HeldPastDeadline:
		return "consumers hold messages past their deadlines"
	case DeadlineFiredLate:
		return "messages expired late"
	case DeadLetterUnroutable:
		return "dead letters had nowhere to go and were parked"
	case ScheduleDegraded:
		return "the schedule in Redis is degraded"
	case Watchdog:
		return "deadlines are watched"
	case Test:
		return "test alert"
	default:
		return "notifications were dropped because the receiver is too slow"
	}
}
