package incident

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
)

const (
	// reloadEvery is how often alerts.yaml is read.
	reloadEvery = 10 * time.Second
	// lookEvery is how often the state is judged.
	lookEvery = time.Second
)

// Incidents judges the state of Curfew, and tells the sinks what is wrong. All methods are safe for concurrent use. A nil
// Incidents records nothing.
type Incidents struct {
	options  Options
	log      *zap.Logger
	metrics  *metrics
	tallies  tallies
	starved  probe
	tracker  *tracker
	delivery *delivery
	heart    heart
	reload   chan struct{} // the file is to be read now
	changing sync.Mutex    // held while what a user changes is saved; taken before saving and the tracker's
	saving   sync.Mutex    // held while the file of incidents is written

	looking sync.Mutex // held while the state is judged; taken before mu and the tracker's
	blamed  map[QueueName]PastDeadline
	losses  losses

	mu       sync.Mutex // taken before those of tracker and delivery
	fileText string     // what was last read
	fileErr  error      // why it is not in force
	fileUsed bool       // a file has been put in force
}

// New returns Incidents that notify the log and the sinks of o. Its error says that one of o.URLs is not the URL of a sink, that a metric
// is registered already, or that what an earlier run kept cannot be read. A file that cannot be put in force is not an error here, but in
// FileError: until it is corrected, every incident goes to every sink of the file that has no mistake.
func New(o Options) (*Incidents, error) {
	o = o.withDefaults()
	for _, address := range o.URLs {
		if err := CheckURL(address); err != nil {
			return nil, fmt.Errorf("incident: %w", err)
		}
	}
	a := &Incidents{options: o, log: o.Log.Named("incident"), tracker: &tracker{}, losses: losses{}, reload: make(chan struct{}, 1)}
	a.tallies.all = make(map[tallyKey]*Tally)
	a.tracker.view.Store(&View{})
	a.heart.stalled, a.heart.poster, a.heart.log = o.Stalled, newPoster(""), o.Log.Named("dead-man-switch")
	var err error
	if a.metrics, err = newMetrics(o.Registerer, a); err != nil {
		return nil, err
	}
	a.delivery = &delivery{
		log: a.log, metrics: a.metrics, publish: o.Publish, firing: func(sink string) []*notice { return a.tracker.firing(sink, o.Stalled != nil && len(o.Stalled()) == 0) },
	}
	if err := a.load(); err != nil {
		return nil, err
	}
	a.readAgain(true)
	return a, nil
}

// FileError is why the file is not in force, with every mistake by line and field; nil if it is in force or there is none.
func (a *Incidents) FileError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fileErr
}

// Run judges the state once a second, and notifies, until ctx ends. It returns nil when everything that it started has ended.
func (a *Incidents) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.delivery.run(func(o *outbox) func() {
		ctx, stop := context.WithCancel(ctx)
		running.Go(func() { o.run(ctx) })
		return stop
	})
	running.Go(func() { a.starved.watch(ctx) })
	if a.options.File != "" {
		running.Go(func() { a.watchFile(ctx) })
		if a.options.Stalled != nil {
			running.Go(func() { a.heart.run(ctx) })
		}
	}
	tick := time.NewTimer(lookEvery)
	defer tick.Stop()
	for {
		tick.Reset(deadline.UntilSecond(time.Now()))
		select {
		case <-tick.C:
			a.looking.Lock()
			a.judgeLocked(time.Now())
			a.looking.Unlock()
			a.saveChanges(saveEvery)
		case <-ctx.Done():
			untold := func(i *incident) bool { // what did not last yet is told only if it has cost messages
				return i.ToldAt == "" && i.Level != Info && !i.Quiet && i.gone.IsZero() && (i.open || i.Toll > 0)
			}
			for _, n := range a.tracker.begun(time.Now(), untold) {
				a.delivery.write(n)
			}
			a.saveChanges(0) // until when what is open is known to last
			return nil
		}
	}
}

const (
	saveEvery = time.Minute      // how often it is saved that an incident still lasts
	saveRetry = 10 * time.Second // when saving is tried again that failed
)

// saveChanges saves what changed, and that incidents last if that was saved longer ago.
func (a *Incidents) saveChanges(ago time.Duration) {
	t := a.tracker
	t.mu.Lock()
	due := t.changed && (ago == 0 || !time.Now().Before(t.retryAt)) || len(t.all) > 0 && time.Since(t.savedAt) >= ago
	t.mu.Unlock()
	if !due {
		return
	}
	if err := a.save(); err != nil {
		a.log.Warn("incidents could not be saved", zap.Error(err))
	}
}

// judgeLocked judges the state now, and notifies of what is due.
func (a *Incidents) judgeLocked(now time.Time) {
	for _, n := range a.tracker.step(now, a.state(now)) {
		a.delivery.notify(n)
	}
	a.delivery.remind(now)
}

// state is the state now.
func (a *Incidents) state(now time.Time) *State {
	incidents := a.tracker.view.Load().goesOn
	s := &State{Tallies: a.tallies.going(now, func(*Tally) bool { return false }, incidents), Starved: a.starved.within(starvedFor, now), Sinks: a.Sinks(), FileError: a.FileError(), HeartbeatSilent: a.heart.silent(), Lost: make(map[string]uint64)}
	if a.options.Look != nil {
		a.options.Look(s)
	}
	s.Now = now
	s.blame(a.blamed)
	a.blamed = s.Blamed
	s.hour = a.options.Hour(func() { s.Tallies = a.tallies.going(now, s.mended, incidents) })
	s.Rising = a.losses.rising(s.Lost, now)
	a.starved.rests.Store(s.Pending == 0)
	return s
}

// Look makes sure that what is shown is at most a second old, or is being judged.
func (a *Incidents) Look() {
	switch last := a.tracker.view.Load().At; {
	case time.Since(last) < lookEvery:
		return
	case last.IsZero():
		a.looking.Lock()
	case !a.looking.TryLock():
		return
	}
	defer a.looking.Unlock()
	if now := time.Now(); now.Sub(a.tracker.view.Load().At) >= lookEvery {
		a.judgeLocked(now)
	}
}

// Reload makes Run read the file now, whether it has changed or not, and log the result.
func (a *Incidents) Reload() { deadline.Wake(a.reload) }

// watchFile puts the file in force when it changes. A file with mistakes is logged, is an incident, and changes nothing.
func (a *Incidents) watchFile(ctx context.Context) {
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

// readAgain puts the file in force if it has changed since it was last read, or if that was requested. Of a file with mistakes it takes the sinks
// that have none, if no file was in force before.
func (a *Incidents) readAgain(requested bool) {
	s, err := a.options.readSettings()
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.text == a.fileText && !requested {
		return
	}
	a.fileText, a.fileErr = s.text, nil
	a.fileUsed = a.fileUsed || err == nil
	if err == nil || err == errNoExchange {
		a.heart.use.Store(&s.deadManSwitch)
	}
	if err == nil || !a.fileUsed {
		a.delivery.use(s.sinks)
		a.tracker.use(s)
	}
	switch {
	case err != nil && a.fileUsed:
		a.fileErr = fmt.Errorf("the previous sinks and rules stay in force\n%w", err)
	case err != nil:
		a.fileErr = fmt.Errorf("no rules are in force and every incident goes to every sink\n%w", err)
	case a.options.File != "":
		a.log.Info("alert rules are in force", zap.String("file", a.options.File), zap.Int("sinks", len(s.sinks)), zap.Int("rules", len(s.rules)-1))
	}
	if err != nil {
		a.log.Error("the alerts file is not in force: correct it", zap.String("file", a.options.File), zap.Error(a.fileErr))
	}
}

// Record counts e. It takes constant time, waits for nothing and does not allocate if the queue is known.
func (a *Incidents) Record(e Event) {
	if a != nil && e.Count > 0 {
		a.tallies.record(e)
	}
}

// Verdict is how Curfew is, in one word.
type Verdict string

// The verdicts, the worst last.
const (
	OK       Verdict = "ok"
	Degraded Verdict = "degraded" // an incident with the level Warning is not over
	Failing  Verdict = "critical" // and here one with Critical
)

// VerdictOf is the verdict on incidents that are not over, the worst first.
func VerdictOf(list []Incident) Verdict {
	if len(list) == 0 {
		return OK
	}
	return map[Level]Verdict{Critical: Failing, Warning: Degraded, Info: OK}[list[0].Level]
}

// View is what was found within the last second. It waits only for the first judgement.
func (a *Incidents) View() *View {
	a.Look()
	return a.tracker.view.Load()
}
