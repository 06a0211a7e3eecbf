package incident

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// resendEvery is how often firing alerts are sent again.
	resendEvery = time.Minute
	// expireAfter is when an Alertmanager resolves an alert that is not sent again: this
	// process is gone, or cannot reach it.
	expireAfter = 4 * resendEvery
	// resolveFor is how long an alert that is over is still sent, as resolved.
	resolveFor = 5 * time.Minute
)

// manager keeps one Alertmanager up to date (Alertmanager: API v2, postAlerts): whatever the notification, it posts all
// firing alerts, and those that are over for a while. An Alertmanager groups, silences and repeats by itself.
type manager struct {
	*poster
	firing func() []*notice
	ended  func(id string, now time.Time) time.Time

	mu    sync.Mutex         // held while it posts
	known map[string]*posted // by their labels
}

// posted is an alert the Alertmanager knows of.
type posted struct {
	alert
	id      string    // of the incident
	endedAt time.Time // zero while it fires
}

// alert is an incident as Alertmanager takes it, and sends it to webhooks.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // zero: it is not over
	GeneratorURL string            `json:"generatorURL"`
}

func (n *notice) alert() alert {
	a := alert{Labels: n.labels(), Annotations: n.annotations(), StartsAt: n.Since.UTC(), GeneratorURL: n.page()}
	if n.over() {
		a.EndsAt = n.Ended.UTC()
	}
	return a
}

func (m *manager) send(ctx context.Context, n *notice) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.present(n, time.Now())
	if len(list) == 0 {
		return errNothing
	}
	body, err := json.Marshal(list)
	if err != nil {
		return backoff.Permanent(fmt.Errorf("incident: encode: %w", err))
	}
	return m.do(ctx, http.MethodPost, body, http.Header{})
}

// present returns the alerts that fire, and those that ended a short time ago. A test fires as long as its notice says so.
func (m *manager) present(news *notice, now time.Time) (list []alert) {
	firing := m.firing()
	if news.Condition == testCondition && !news.over() {
		firing = append(firing, news)
	}
	fires := make(map[string]struct{}, len(firing))
	for _, n := range firing {
		a := n.alert()
		id := format(a.Labels)
		fires[id] = struct{}{}
		m.known[id] = &posted{alert: a, id: n.ID}
	}
	for id, p := range m.known {
		if _, on := fires[id]; on {
			p.EndsAt = now.Add(expireAfter).UTC()
		} else if p.endedAt.IsZero() {
			p.endedAt, p.EndsAt = now, m.ended(p.id, now).UTC()
		} else if now.Sub(p.endedAt) > resolveFor {
			delete(m.known, id)
			continue
		}
		list = append(list, p.alert)
	}
	return list
}

// watchdog is an alert that fires for as long as this process is well. When it stops, something is wrong.
func watchdog(from source, now time.Time) *notice {
	return &notice{
		Incident: Incident{Condition: "watchdog", Alertname: "CurfewWatchdog", Level: Info, Since: now, Runbook: from.runbook("CurfewWatchdog"), Summary: "Deadlines are watched: this alert fires all the time; if it stops, something is wrong"},
		source:   from, rule: &rule{Rule: Rule{Name: "curfew", Severity: "none"}, everywhere: true}, names: map[string]string{"alertname": "CurfewWatchdog"}, at: now,
	}
}
