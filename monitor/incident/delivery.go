package incident

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// delivery hands notifications to the log and to the sinks in force. Safe for concurrent use.
type delivery struct {
	log     *zap.Logger
	metrics *metrics
	publish func(context.Context, Publication) error
	firing  func(sink string) []*notice // what an Alertmanager is sent

	mu       sync.Mutex
	outboxes []*outbox                   // replaced, never changed
	start    func(*outbox) (stop func()) // starts a new one; nil while Run does not run
	reminded time.Time                   // when Alertmanagers were last sent what fires; zero: there may be a new one
}

// run starts the outboxes with start, now and when settings bring new ones.
func (d *delivery) run(start func(*outbox) (stop func())) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start = start
	for _, o := range d.outboxes {
		o.stop = start(o)
	}
}

// notify hands a to the log and to the sinks of its rule.
func (d *delivery) notify(a *notice) {
	d.write(a)
	for _, o := range d.sinks() {
		if a.rule.sends(o.name) {
			o.put(a)
		}
	}
}

// remind has Alertmanagers sent again what fires, once a minute.
func (d *delivery) remind(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.reminded) < resendEvery {
		return
	}
	d.reminded = now
	for _, o := range d.outboxes {
		if kindOfSink(o.settings.url) == alertmanagerKind {
			o.put(&notice{})
		}
	}
}

// sinks returns the outboxes of all sinks; the log has none.
func (d *delivery) sinks() []*outbox {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outboxes
}

// names returns the names of all sinks.
func (d *delivery) names() []string {
	names := []string{logName}
	for _, o := range d.sinks() {
		names = append(names, o.name)
	}
	return names
}

// newSink makes a sink of settings that have been checked.
func (d *delivery) newSink(s sinkSettings) sink {
	made, err := s.sink(d)
	if err != nil {
		panic("incident: a sink that was checked cannot be made: " + err.Error())
	}
	return made
}

// use makes outboxes for the sinks in list and ends all others. A sink that keeps its name keeps what waits for it.
func (d *delivery) use(list []sinkSettings) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ended := slices.Clone(d.outboxes)
	outboxes := make([]*outbox, 0, len(list))
	for _, s := range list {
		n := slices.IndexFunc(ended, func(o *outbox) bool { return o.name == s.name })
		if n < 0 {
			o := &outbox{name: s.name, settings: s, sink: d.newSink(s), log: d.log, metrics: d.metrics, length: d.metrics.begin(s.name), arrived: make(chan struct{}, 1)}
			if d.start != nil {
				o.stop = d.start(o)
			}
			outboxes, d.reminded = append(outboxes, o), time.Time{}
			continue
		}
		o := ended[n]
		ended = slices.Delete(ended, n, n+1)
		outboxes = append(outboxes, o)
		if o.settings != s {
			o.settings, d.reminded = s, time.Time{}
			made := d.newSink(s) // which gets what waits, too
			o.mu.Lock()
			o.sink, o.fails = made, nil
			o.mu.Unlock()
		}
	}
	for _, o := range ended {
		if o.stop != nil {
			o.stop()
		}
		if lost := o.status().Queued; lost > 0 {
			d.log.Warn("a sink was removed; its queued notifications were dropped", zap.String("sink", o.name), zap.Int("notifications", lost))
		}
		d.metrics.queued.DeleteLabelValues(o.name) // its counters stay
	}
	d.outboxes = outboxes
}
