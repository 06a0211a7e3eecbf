package alert

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// message is what a webhook of Alertmanager carries, version 4.
type message struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   uint64            `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []messageAlert    `json:"alerts"`
}

type messageAlert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

func (w *webhook) message(n notification) message {
	labels := n.labels()
	group := maps.Clone(labels)
	labels["severity"] = kinds[n.kind].severity
	if w.instance != "" {
		labels["instance"] = w.instance
	}
	annotations := n.annotations()
	return message{
		Version:           "4",
		GroupKey:          "{}:" + format(group),
		Status:            n.status(),
		Receiver:          "curfew",
		GroupLabels:       group,
		CommonLabels:      labels,
		CommonAnnotations: annotations,
		ExternalURL:       w.externalURL,
		Alerts: []messageAlert{{
			Status:       n.status(),
			Labels:       labels,
			Annotations:  annotations,
			StartsAt:     n.startsAt.UTC(),
			EndsAt:       n.endsAt.UTC(),
			GeneratorURL: w.externalURL,
			Fingerprint:  n.fingerprint(),
		}},
	}
}

func (n notification) status() string {
	if n.resolved {
		return "resolved"
	}
	return "firing"
}

// labels are what tells the group from others.
func (n notification) labels() map[string]string {
	l := map[string]string{"alertname": n.kind.String()}
	if n.queue != "" {
		l["vhost"], l["queue"] = n.vhost, n.queue
	}
	if n.action != "" {
		l["action"] = n.action
	}
	if n.peer != "" {
		l["peer"] = n.peer
	}
	return l
}

// fingerprint is the same for every notification of a group.
func (n notification) fingerprint() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(format(n.labels())))
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

func (n notification) annotations() map[string]string {
	a := map[string]string{"summary": n.summary()}
	if n.Count == 0 {
		return a
	}
	a["count"] = strconv.FormatInt(n.Count, 10)
	if n.kind == NotificationsDropped {
		return a
	}
	a["first_deadline"] = stamp(n.FirstDeadlineAt)
	a["worst_lateness"] = (time.Duration(n.WorstMillis) * time.Millisecond).String()
	if n.kind == InstanceSilent {
		a["queues"] = n.detail
	} else {
		a["last_deadline"] = stamp(n.LastDeadlineAt)
	}
	return a
}

func stamp(unixMillis int64) string {
	return time.UnixMilli(unixMillis).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// summary is one sentence for a person.
func (n notification) summary() string {
	if n.resolved {
		return n.subject() + ": over"
	}
	switch n.kind {
	case ScheduleDegraded:
		return n.subject() + ": " + n.detail
	case InstanceSilent:
		return fmt.Sprintf("%s and %d of its deadlines have passed: %s", n.subject(), n.Count, n.detail)
	case NotificationsDropped:
		return fmt.Sprintf("%s: %d", n.subject(), n.Count)
	default:
		return fmt.Sprintf("%s: %d in queue %q of vhost %q", n.subject(), n.Count, n.queue, n.vhost)
	}
}

func (n notification) subject() string {
	switch n.kind {
	case DeadlineMissed:
		return "messages expired before they were consumed"
	case DeadlineFiredLate:
		return "messages left their queue late after their deadline"
	case DeadLetterUnroutable:
		return "expired messages could not be dead-lettered"
	case ScheduleDegraded:
		return "the schedule in Redis is degraded"
	case InstanceSilent:
		return fmt.Sprintf("instance %q is silent", n.peer)
	default:
		return "notifications were dropped because the receiver is too slow"
	}
}
