package alert

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Options of Alerts. The zero value logs, and nothing else.
type Options struct {
	// WebhookURL is posted to; http or https. Empty: no webhook.
	WebhookURL string
	// Instance names this process in every alert (label instance); may be empty.
	Instance string
	// ExternalURL is where this process can be looked at (externalURL and
	// generatorURL of the webhook); may be empty.
	ExternalURL string
	// GroupWait is how long a new group collects before it is told; 0 is 1 s.
	GroupWait time.Duration
	// GroupInterval is the least time between two notifications of a group, and
	// how long it must be quiet to count as resolved; 0 is 60 s.
	GroupInterval time.Duration
	// Log; nil is silent.
	Log *zap.Logger
	// Registerer takes the metrics; nil keeps them private.
	Registerer prometheus.Registerer
}

const (
	defaultGroupWait     = time.Second
	defaultGroupInterval = time.Minute
	repeatInterval       = 4 * time.Hour
	// maxGroups bounds the groups; what finds no room is added up per Kind and
	// Action under the queue "_other".
	maxGroups = 1000
)

// Alerts adds events up and tells them. All methods are safe for concurrent use;
// on a nil Alerts the recording ones do nothing.
type Alerts struct {
	wait, interval time.Duration
	log            sink
	outboxes       []*outbox

	mu     sync.Mutex
	groups map[key]*group
	signal chan struct{} // a group is due sooner than Run knows
}

// group is what is known of one key since it was first seen.
type group struct {
	Tally           // since it was last told; of a state, at present
	on       bool   // a state that lasts
	detail   string // of the state
	told     bool   // that it fires; so that it ends has to be told, too
	startsAt time.Time
	tellAt   time.Time
}

// New returns Alerts that tell through the log and what else o names. Its error
// says that the webhook's URL is none, or that a metric is registered already.
func New(o Options) (*Alerts, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	a := &Alerts{
		wait:     orDefault(o.GroupWait, defaultGroupWait),
		interval: orDefault(o.GroupInterval, defaultGroupInterval),
		groups:   make(map[key]*group),
		signal:   make(chan struct{}, 1),
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	log := o.Log.Named("alert")
	a.log = &logSink{log: log, sent: m.notifications.WithLabelValues("log", "sent")}
	if o.WebhookURL == "" {
		return a, nil
	}
	u, err := url.Parse(o.WebhookURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The URL is a secret: it is not repeated here.
		return nil, fmt.Errorf("alert: the webhook's URL must be http://... or https://")
	}
	a.outboxes = append(a.outboxes, newOutbox(newWebhook(u, o), m, log))
	return a, nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// Record adds e to its group. It takes constant time, waits for nothing and does
// not allocate if the group is known.
func (a *Alerts) Record(e Event) {
	if a == nil || e.Count == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.group(key{kind: e.Kind, vhost: e.VHost, queue: e.Queue, action: e.Action}).merge(e.Tally)
}

// group finds the group of k or begins one. Callers hold mu.
func (a *Alerts) group(k key) *group {
	if g := a.groups[k]; g != nil {
		return g
	}
	if len(a.groups) >= maxGroups && k.queue != "" {
		k.vhost, k.queue = otherQueues, otherQueues
		if g := a.groups[k]; g != nil {
			return g
		}
	}
	now := time.Now()
	g := &group{startsAt: now, tellAt: now.Add(a.wait)}
	a.groups[k] = g
	a.wake()
	return g
}

func (a *Alerts) wake() {
	select {
	case a.signal <- struct{}{}:
	default:
	}
}

// Run tells what is recorded until ctx ends, and returns nil when all it started
// has ended.
func (a *Alerts) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, o := range a.outboxes {
		running.Go(func() { o.run(ctx) })
	}
	a.tellUntil(ctx)
	return nil
}

func (a *Alerts) tellUntil(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.signal:
		case <-ctx.Done():
			for _, n := range a.untold(time.Now()) {
				a.log.send(ctx, n)
			}
			return
		}
		due, next := a.due(time.Now())
		for _, n := range due {
			a.log.send(ctx, n)
			for _, o := range a.outboxes {
				o.put(n)
			}
		}
		timer.Reset(next)
	}
}

// due takes the notifications to send now, and how long the next will take.
func (a *Alerts) due(now time.Time) (due []notification, next time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next = repeatInterval
	for k, g := range a.groups {
		if !g.tellAt.After(now) {
			if n, ok := a.step(k, g, now); ok {
				due = append(due, n)
			}
		}
		if a.groups[k] == g {
			next = min(next, g.tellAt.Sub(now))
		}
	}
	return due, next
}

// step takes a group whose time has come one step on in its life. Callers hold mu.
func (a *Alerts) step(k key, g *group, now time.Time) (notification, bool) {
	n := notification{key: k, Tally: g.Tally, detail: g.detail, startsAt: g.startsAt}
	switch {
	case g.on:
		g.told, g.tellAt = true, now.Add(repeatInterval)
		return n, true
	case g.Count > 0:
		g.told, g.tellAt = true, now.Add(a.interval)
	default:
		delete(a.groups, k)
		n.resolved, n.endsAt = true, now
		return n, g.told
	}
	g.Tally = Tally{}
	return n, true
}

// untold takes what has been recorded and not told, whether it is time or not.
func (a *Alerts) untold(now time.Time) (rest []notification) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, g := range a.groups {
		if g.Count > 0 && !(g.on && g.told) {
			n, _ := a.step(k, g, now)
			rest = append(rest, n)
		}
	}
	return rest
}
