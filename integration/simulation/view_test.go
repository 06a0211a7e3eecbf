package simulation

import (
	"context"
	"sync"
	"time"

	"curfew/broker/deadline"
)

// pump reads the broker's only feed and passes it on to the view of every monitor, since a
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
		var buf [64]deadline.Event
		for {
			n, lagged, err := b.Deadlines().Events(ctx, buf[:])
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

func (w *world) handOut(events []deadline.Event, lagged bool) {
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

// stoppable is a process that SIGSTOP stops: while it is stopped, wait does not return.
type stoppable struct {
	mu      sync.Mutex
	stopped chan struct{} // nil: it runs
}

func (p *stoppable) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.stopped = make(chan struct{})
	}
}

func (p *stoppable) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
}

func (p *stoppable) wait() {
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
}

// view is the broker as one monitor sees it: in a process that may be stopped, and with its own feed, which
// may lag. It implements schedule.Primary.
type view struct {
	w       *world
	process *stoppable
	ahead   int64 // how far its clock is ahead of the broker's, µs

	mu      sync.Mutex
	events  []deadline.Event
	losing  int // this number of events will be lost
	lagged  bool
	whole   time.Time // since when no event was lost
	dead    bool      // the monitor was killed: its calls reach nothing
	expired deadline.Stream
	arrived chan struct{}
}

// push adds events. It needs the world's lock.
func (v *view) push(events []deadline.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range events {
		if v.losing > 0 {
			v.losing--
			v.lagged, v.whole = true, time.Now()
			continue
		}
		v.events = append(v.events, e)
	}
	v.ring()
}

func (v *view) ring() {
	select {
	case v.arrived <- struct{}{}:
	default:
	}
}

// lag loses the next n events and notifies the monitor.
func (v *view) lag(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.losing += n
}

// wholeSince returns the time since which the feed has lost nothing.
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

// Events implements schedule.Primary.
func (v *view) Events(ctx context.Context, buf []deadline.Event) (n int, lagged bool, err error) {
	for {
		v.process.wait()
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

// Expire implements schedule.Primary.
func (v *view) Expire(shadows []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer {
	v.process.wait()
	defer v.process.wait()
	made := false
	v.w.callIf(v, func() {
		made = true
		want := v.w.model.expire(shadows, path)
		got := v.w.primary.Expire(shadows, path, wait, nil)
		out = append(out, got...)
		v.w.compareExpiry(shadows, got, want)
	}, "a monitor expires %d messages", len(shadows))
	if !made {
		for range shadows {
			out = append(out, deadline.Answer{Outcome: deadline.NotDue, At: v.Now().Add(time.Second)})
		}
	}
	return out
}

// Expiries implements schedule.Primary.
func (v *view) Expiries() *deadline.Stream { return &v.expired }

// Track implements schedule.Primary.
func (v *view) Track(shadows []deadline.Ref) []deadline.Ref {
	v.process.wait()
	defer v.process.wait()
	kept := shadows[:0]
	v.w.callIf(v, func() {
		want := v.w.model.track(shadows)
		kept = v.w.primary.Track(shadows)
		if len(missing(kept, want)) > 0 || len(kept) != len(want) {
			v.w.fail("track: kept %+v, should be %+v", kept, want)
		}
	}, "a monitor tracks %d messages", len(shadows))
	return kept
}

// Snapshot implements schedule.Primary. It reads each page with the world's lock held, and
// calls fn without it.
func (v *view) Snapshot(ctx context.Context, fn func(page []deadline.Ref) error) error {
	v.process.wait()
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if v.killed() || v.w.failure != "" {
		return context.Canceled
	}
	v.w.note("a monitor takes a snapshot")
	return v.w.primary.Snapshot(ctx, func(page []deadline.Ref) error {
		v.w.model.track(page)
		v.w.mu.Unlock()
		defer v.w.mu.Lock()
		return fn(page)
	})
}

// QueueName implements schedule.Primary.
func (v *view) QueueName(queue uint64) (vhost, name string, ok bool) {
	return v.w.primary.QueueName(queue)
}

// Now implements schedule.Primary.
func (v *view) Now() deadline.Instant { return deadline.Instant(v.w.now()/microsecond + v.ahead) }

// ClockOffset implements schedule.Primary.
func (v *view) ClockOffset() time.Duration { return 0 }

// Survey implements schedule.Primary: no forecasts are made here.
func (v *view) Survey(int, func(*deadline.Survey)) {}

// TimeToLive implements schedule.Primary.
func (v *view) TimeToLive(deadline.Ref) (ttl deadline.Millis, ok bool) { return 0, false }
