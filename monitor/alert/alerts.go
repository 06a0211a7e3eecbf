package alert

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// reloadEvery is how often alerts.yaml is read.
const reloadEvery = 10 * time.Second

// Alerts adds events up and notifies the sinks of them. All methods are safe for
// concurrent use. On a nil Alerts, those that record do nothing.
type Alerts struct {
	options  Options
	log      *zap.Logger
	metrics  *metrics
	silences *silences
	tracker  *tracker
	delivery *delivery
	reload   chan struct{} // the file is to be read now

	mu       sync.Mutex // taken before those of tracker and delivery
	fileText string     // what was last read
	fileErr  error      // why it is not in force
	fileUsed bool       // a file has been put in force
	source   source     // as the settings in force say
}

// New returns Alerts that notify the log and the sinks of o. Its error says that one of
// o.URLs is not the URL of a sink, that a metric is registered already, or that silences
// cannot be read. A file that cannot be put in force is not an error here, but in FileError:
// until it is corrected, every event goes to every sink of the file that has no mistake.
func New(o Options) (*Alerts, error) {
	o = o.withDefaults()
	for _, address := range o.URLs {
		if err := CheckURL(address); err != nil {
			return nil, fmt.Errorf("alert: %w", err)
		}
	}
	a := &Alerts{options: o, log: o.Log.Named("alert"), silences: &silences{}, reload: make(chan struct{}, 1)}
	if o.Dir != "" {
		a.silences.path = filepath.Join(o.Dir, silenceFile)
	}
	a.tracker = newTracker(a.silences)
	var err error
	if a.metrics, err = newMetrics(o.Registerer, a); err != nil {
		return nil, err
	}
	a.tracker.metrics = a.metrics
	a.delivery = &delivery{
		log: &logSink{log: a.log, sent: a.metrics.of(logName).sent}, zap: a.log, metrics: a.metrics,
		exchange: o.Exchange, stalled: o.Stalled, firing: a.tracker.firing,
	}
	if err := a.silences.load(a.log); err != nil {
		return nil, err
	}
	s, err := a.readSettings()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fileText, a.fileErr, a.fileUsed = s.text, err, err == nil
	a.useLocked(s)
	if err != nil {
		a.log.Error("alert rules are not in force, and every event goes to every sink: correct the file", zap.String("file", o.File), zap.Error(err))
	} else if o.File != "" {
		a.logUse(s)
	}
	return a, nil
}

// readSettings reads the file and the URLs.
func (a *Alerts) readSettings() (settings, error) {
	s, err := a.options.readSettings()
	if a.options.Exchange == nil && slices.ContainsFunc(s.sinks, func(s sinkSettings) bool { return s.url == eventsURL }) {
		s.sinks = slices.DeleteFunc(s.sinks, func(s sinkSettings) bool { return s.url == eventsURL })
		err = errors.Join(err, fmt.Errorf("alert: no exchange for %s", eventsURL))
	}
	return s, err
}

func (a *Alerts) logUse(s settings) {
	a.log.Info("alert rules are in force", zap.String("file", a.options.File), zap.Int("sinks", len(s.sinks)), zap.Int("rules", len(s.rules)))
}

// FileError is why the file is not in force, with every mistake by line and field; nil if it
// is in force or there is none.
func (a *Alerts) FileError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fileErr
}

// Run notifies of what is recorded until ctx ends, and returns nil when everything that it
// started has ended.
func (a *Alerts) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.delivery.run(func(c channel) func() {
		ctx, stop := context.WithCancel(ctx)
		running.Go(func() { c.run(ctx) })
		return stop
	})
	if a.options.File != "" {
		running.Go(func() { a.watchFile(ctx) })
	}
	a.notifyUntil(ctx)
	return nil
}

func (a *Alerts) notifyUntil(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.tracker.signal:
		case <-ctx.Done():
			for _, n := range a.tracker.remaining(time.Now()) {
				a.delivery.log.notify(n)
			}
			return
		}
		a.refreshHolders(time.Now())
		due, next := a.tracker.due(time.Now())
		for _, n := range due {
			a.delivery.notify(n)
		}
		timer.Reset(max(next, time.Millisecond))
	}
}

// Reload makes Run read the file now, whether it has changed or not, and log the result.
func (a *Alerts) Reload() {
	if a == nil {
		return
	}
	select {
	case a.reload <- struct{}{}:
	default:
	}
}

// watchFile puts the file in force when it changes. A file with mistakes is logged, shown in
// Health, and changes nothing.
func (a *Alerts) watchFile(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		requested := false
		select {
		case <-tick.C:
		case <-a.reload:
			requested = true
		case <-ctx.Done():
			return
		}
		a.readAgain(requested)
	}
}

// readAgain puts the file in force if it has changed since it was last read, or if that was
// requested.
func (a *Alerts) readAgain(requested bool) {
	s, err := a.readSettings()
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.text == a.fileText && !requested {
		return
	}
	a.fileText, a.fileErr = s.text, err
	if err != nil {
		a.log.Error("the changed alerts file is not in force: correct it", zap.Error(err))
		return
	}
	a.fileUsed = true
	a.useLocked(s)
	a.logUse(s)
}

// useLocked puts settings in force.
func (a *Alerts) useLocked(s settings) {
	a.source = s.source
	a.delivery.use(s.sinks)
	a.tracker.use(s.rules, &s.rest)
}

// Record adds e to its incident. It takes constant time, waits for nothing and does
// not allocate if the incident is known.
func (a *Alerts) Record(e Event) {
	if a != nil && e.Count > 0 {
		a.tracker.record(e)
	}
}

// Health explains to an operator what keeps alerts from being sent.
func (a *Alerts) Health() (reasons []string) {
	if a == nil {
		return nil
	}
	for _, c := range a.delivery.sinks() {
		if t := c.trouble(); t != nil && time.Since(t.Since) >= troubleAfter {
			reasons = append(reasons, fmt.Sprintf("%s has been failing for %s: %s", c.name(), time.Since(t.Since).Round(time.Second), t.Error))
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fileErr != nil {
		still := "no rules are in force and every event goes to every sink"
		if a.fileUsed {
			still = "the previous sinks and rules stay in force"
		}
		reasons = append(reasons, still+"; correct the file: "+strings.ReplaceAll(a.fileErr.Error(), "\n", "; "))
	}
	slices.Sort(reasons)
	return reasons
}

// troubleAfter is how long a sink must fail for that to show in Health.
const troubleAfter = time.Minute
