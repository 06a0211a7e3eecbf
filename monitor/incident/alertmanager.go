package incident

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"curfew/monitor/incident/internal/transport"
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

// manager keeps one Alertmanager up to date (Alertmanager: API v2, postAlerts): it posts
// firing alerts again and again, and those that are over for a while. An Alertmanager groups,
// silences and repeats by itself.
type manager struct {
	named
	*transport.Poster
	source  source
	stalled func() []string // nil: no watchdog
	firing  func() []*notice
	log     *zap.Logger
	counts  counters
	state   condition
	signal  chan struct{}
	known   map[string]*posted // by fingerprint; used only by run
}

// posted is an alert the Alertmanager knows of.
type posted struct {
	postedAlert
	endedAt time.Time // zero while it fires
}

// postedAlert is one of the alerts of POST /api/v2/alerts.
type postedAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

func (d *delivery) newManagerLocked(s sinkSettings) *manager {
	return &manager{
		named: named(s.name), Poster: s.poster(), source: s.source, stalled: d.stalled, log: d.zap,
		firing: func() []*notice { return d.firing(s.name) },
		counts: d.metrics.of(s.name), signal: make(chan struct{}, 1), known: make(map[string]*posted),
	}
}

func (m *manager) trouble() *trouble { return m.state.trouble() }
func (m *manager) queued() int       { return len(m.signal) }

// put signals that there is news. It is looked up when it is sent.
func (m *manager) put(*notice) {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// run sends until ctx ends.
func (m *manager) run(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstWait, resendEvery
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-m.signal:
		case <-ctx.Done():
			return
		}
		if m.round(ctx) {
			pause.Reset()
			timer.Reset(resendEvery)
		} else if !rest(ctx, pause.NextBackOff()) {
			return
		} else {
			timer.Reset(0)
		}
	}
}

// rest waits for d; false if ctx ended first.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// round posts the present alerts once; false if that failed and must be retried.
func (m *manager) round(ctx context.Context) bool {
	list := m.present(m.firing(), time.Now())
	if len(list) == 0 {
		return true
	}
	err := m.PostJSON(ctx, list)
	first := m.state.trouble() == nil
	m.state.note(err)
	if err == nil {
		m.counts.sent.Inc()
		return true
	}
	m.counts.failed.Inc()
	if first && ctx.Err() == nil {
		m.log.Error("notifications not delivered; retrying", zap.String("sink", m.name()), zap.Error(err))
	}
	return false
}

// present returns the alerts that fire, and those that ended a short time ago.
func (m *manager) present(firing []*notice, now time.Time) (list []postedAlert) {
	fires := make(map[string]struct{}, len(firing)+1)
	note := func(a *notice) {
		p := m.posted(a)
		id := format(p.Labels)
		fires[id] = struct{}{}
		m.known[id] = &posted{postedAlert: p}
	}
	for _, a := range firing {
		note(a)
	}
	if m.stalled != nil && len(m.stalled()) == 0 {
		note(watchdog(now))
	}
	for id, p := range m.known {
		if _, on := fires[id]; on {
			p.EndsAt = now.Add(expireAfter).UTC()
		} else if p.endedAt.IsZero() {
			p.endedAt, p.EndsAt = now, now.UTC()
		} else if now.Sub(p.endedAt) > resolveFor {
			delete(m.known, id)
			continue
		}
		list = append(list, p.postedAlert)
	}
	return list
}

func (m *manager) posted(a *notice) postedAlert {
	return postedAlert{
		Labels:       m.source.labels(a),
		Annotations:  m.source.annotations(a),
		StartsAt:     a.Since.UTC(),
		GeneratorURL: m.source.page(a),
	}
}

// watchdog is an alert that fires for as long as this process is well. When it stops, something is wrong.
func watchdog(now time.Time) *notice {
	return &notice{
		Incident: Incident{Condition: "watchdog", Alertname: "CurfewWatchdog", Level: Info, Since: now, Summary: "Deadlines are watched: this alert fires all the time; if it stops, something is wrong"},
		rule:     &rule{name: "curfew", everywhere: true, severity: "none"}, names: map[string]string{"alertname": "CurfewWatchdog"}, at: now,
	}
}

// send posts a once.
func (m *manager) send(ctx context.Context, a *notice) error {
	p := m.posted(a)
	p.EndsAt = a.at.Add(expireAfter).UTC()
	if a.over() {
		p.EndsAt = a.Ended.UTC()
	}
	return m.PostJSON(ctx, []postedAlert{p})
}
