package simulation

import (
	"context"
	"sync"
	"time"

	"curfew/broker"
	"curfew/monitor"
	"curfew/scheduler"
)

// pump reads the broker's one feed and hands it to every monitor's view, since a
// broker has one subscriber and a simulation may have two monitors.
type pump struct {
	stop  context.CancelFunc
	ended chan struct{}
}

func startPump(w *world) *pump {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pump{stop: cancel, ended: make(chan struct{})}
	b := w.broker
	go func() {
		defer close(p.ended)
		var buf [64]broker.DeadlineEvent
		for {
			n, lagged, err := b.DeadlineEvents(ctx, buf[:])
			if err != nil {
				return
			}
			w.handOut(buf[:n], lagged)
		}
	}()
	return p
}

func (p *pump) end() {
	p.stop()
	<-p.ended
}

func (w *world) handOut(events []broker.DeadlineEvent, lagged bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != "" {
		return
	}
	if lagged {
		w.fail("the feed lagged")
	}
	w.checkEvents(events)
	for _, x := range w.watchers {
		x.view.push(events)
	}
}

// gate stops whoever passes it while it is shut: a process that is stopped.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil: open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) pass() {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

// view is the broker as one monitor sees it: with a feed of its own, which may
// lag, and through a gate. It implements monitor.Primary.
type view struct {
	w     *world
	gate  *gate
	ahead int64 // µs by which its clock is ahead of the broker's

	mu      sync.Mutex
	events  []monitor.Event
	losing  int // so many more events are lost
	lagged  bool
	whole   time.Time // since when none was
	dead    bool      // the monitor was killed: its calls reach nothing
	expired func([]monitor.Expiry)
	arrived chan struct{}
}

// push is called with the world's lock held.
func (v *view) push(events []broker.DeadlineEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range events {
		if v.losing > 0 {
			v.losing--
			v.lagged, v.whole = true, time.Now()
			continue
		}
		v.events = append(v.events, event(e))
	}
	v.ring()
}

// event translates as package embedded does.
func event(e broker.DeadlineEvent) monitor.Event {
	return monitor.Event{
		Shadow: scheduler.Shadow(e.Ref), Kind: monitor.EventKind(e.Kind),
	}
}

func (v *view) ring() {
	select {
	case v.arrived <- struct{}{}:
	default:
	}
}

// lag loses the next n events; the monitor is told.
func (v *view) lag(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.losing += n
}

// wholeSince is from when on the feed lost nothing.
func (v *view) wholeSince() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.whole
}

func (v *view) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
}

func (v *view) killed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}

// Events implements monitor.Primary.
func (v *view) Events(ctx context.Context, buf []monitor.Event) (n int, lagged bool, err error) {
	for {
		v.gate.pass()
		v.mu.Lock()
		n = copy(buf, v.events)
		v.events = v.events[n:]
		lagged, v.lagged = v.lagged, false
		v.mu.Unlock()
		if n > 0 || lagged {
			return n, lagged, nil
		}
		select {
		case <-v.arrived:
		case <-ctx.Done():
			return 0, false, ctx.Err()
		}
	}
}

// Expire implements monitor.Primary.
func (v *view) Expire(shadows []scheduler.Shadow, path monitor.Path, out []monitor.Result) []monitor.Result {
	v.gate.pass()
	defer v.gate.pass()
	refs := refsOf(shadows)
	made := false
	v.w.callIf(v, func() {
		made = true
		want := v.w.model.expire(refs, broker.Path(path))
		got := v.w.primary.Expire(shadows, path, nil)
		out = append(out, got...)
		v.w.compareExpiry(refs, answers(got), want)
	}, "a monitor expires %d messages", len(shadows))
	if !made {
		for range shadows {
			out = append(out, monitor.Result{Outcome: monitor.Failed})
		}
	}
	return out
}

func answers(results []monitor.Result) (out []broker.ExpireResult) {
	for _, r := range results {
		out = append(out, broker.ExpireResult{Outcome: broker.ExpireOutcome(r.Outcome), At: r.At})
	}
	return out
}

func refsOf(shadows []scheduler.Shadow) (refs []broker.MessageRef) {
	for _, s := range shadows {
		refs = append(refs, broker.MessageRef(s))
	}
	return refs
}

// Expiries implements monitor.Primary.
func (v *view) Expiries(fn func([]monitor.Expiry)) { v.expired = fn }

// Track implements monitor.Primary.
func (v *view) Track(shadows []scheduler.Shadow) []scheduler.Shadow {
	v.gate.pass()
	defer v.gate.pass()
	kept := shadows[:0]
	v.w.callIf(v, func() {
		want := v.w.model.track(refsOf(shadows))
		kept = v.w.primary.Track(shadows)
		if got := refsOf(kept); len(missing(got, want)) > 0 || len(got) != len(want) {
			v.w.fail("track: kept %+v, should be %+v", got, want)
		}
	}, "a monitor tracks %d messages", len(shadows))
	return kept
}

// Snapshot implements monitor.Primary. The pages are read one by one with the
// world's lock held, and fn is called without.
func (v *view) Snapshot(ctx context.Context, fn func(page []scheduler.Shadow) error) error {
	v.gate.pass()
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if v.killed() || v.w.failure != "" {
		return context.Canceled
	}
	v.w.note("a monitor takes a snapshot")
	return v.w.primary.Snapshot(ctx, func(page []scheduler.Shadow) error {
		v.w.model.track(refsOf(page))
		v.w.mu.Unlock()
		defer v.w.mu.Lock()
		return fn(page)
	})
}

// QueueName implements monitor.Primary.
func (v *view) QueueName(queue uint64) (vhost, name string, ok bool) {
	return v.w.primary.QueueName(queue)
}

// Now implements monitor.Primary.
func (v *view) Now() int64 { return v.w.now()/microsecond + v.ahead }

// ClockOffset implements monitor.Primary.
func (v *view) ClockOffset() time.Duration { return 0 }
