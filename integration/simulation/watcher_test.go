package simulation

import (
	"context"
	"time"

	"curfew/monitor/schedule"
)

// watcher is a running monitor.
type watcher struct {
	monitor *schedule.Scheduler
	view    *view
	process *stoppable
	stop    context.CancelFunc
	ended   chan struct{}

	paused bool
	since  time.Time // since when it has run
}

// maxWatchers is the maximum number of monitors at a time. With Redis, the second shares
// the first one's schedule, as a thread of the same process would, or is refused, as
// another process is.
const maxWatchers = 2

// startMonitor starts a monitor, unless there are enough.
func (w *world) startMonitor() {
	if len(w.watchers) == maxWatchers || !w.plan.monitored {
		return
	}
	x := &watcher{process: &stoppable{}, ended: make(chan struct{}), since: time.Now()}
	x.view = &view{w: w, process: x.process, arrived: make(chan struct{}, 1)}
	if chance(w.rng, 0.2) {
		x.view.ahead = 1 + w.rng.Int64N(5000)
	}
	o := schedule.Options{Primary: x.view}
	if w.redis != nil {
		o.Redis = w.redis.handle(x.process, chance(w.rng, 0.5))
	}
	if chance(w.rng, 0.2) {
		o.WriteWindow = -1
	}
	var err error
	if x.monitor, err = schedule.New(o); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.stop = cancel
	w.mu.Lock()
	w.note("a monitor starts")
	w.watchers = append(w.watchers, x)
	w.mu.Unlock()
	go func() {
		defer close(x.ended)
		_ = x.monitor.Run(ctx)
	}()
}

// kill ends a monitor at once: nothing that it does from now on reaches the broker or
// Redis.
func (w *world) kill(x *watcher) {
	w.mu.Lock()
	w.note("a monitor is killed")
	x.view.kill()
	for i := range w.watchers {
		if w.watchers[i] == x {
			w.watchers = append(w.watchers[:i:i], w.watchers[i+1:]...)
			break
		}
	}
	w.mu.Unlock()
	x.stop()
	x.process.goOn()
	<-x.ended
}

func (w *world) killMonitor() {
	if x := w.anyWatcher(); x != nil {
		w.kill(x)
	}
}

func (w *world) anyWatcher() *watcher {
	if len(w.watchers) == 0 {
		return nil
	}
	return pick(w.rng, w.watchers)
}

// pauseMonitor stops a monitor (SIGSTOP), or continues it.
func (w *world) pauseMonitor() {
	x := w.anyWatcher()
	if x == nil {
		return
	}
	if x.paused {
		w.resume(x)
		return
	}
	w.say("a monitor is stopped")
	x.paused = true
	x.process.stop()
}

func (w *world) resume(x *watcher) {
	if x.paused {
		w.say("a monitor goes on")
		x.paused, x.since = false, time.Now()
		x.process.goOn()
	}
}

// lag loses a part of a monitor's feed.
func (w *world) lag() {
	if x := w.anyWatcher(); x != nil {
		n := 1 + w.rng.IntN(8)
		w.say("a monitor's feed loses the next %d events", n)
		x.view.lag(n)
	}
}

func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(format, args...)
}

const (
	// lateBy is how late a monitor may be that had time to learn of a message, whatever
	// Redis does (package schedule, Guarantees), plus a ms for rounding.
	lateBy = 251 * time.Millisecond
	// learnIn is that time: a monitor checks its clock every second, and repairs a loss
	// with a snapshot, one second after the last one.
	learnIn = 3 * time.Second
)

// checkLateness looks for messages that are ready although their deadline has come and some
// monitor had time to notice. No call is in progress at that time.
func (w *world) checkLateness() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var watched time.Duration // how long it has been watched
	for _, x := range w.watchers {
		if !x.paused {
			watched = max(watched, min(time.Since(x.since), time.Since(x.view.wholeSince())))
		}
	}
	if min(watched, time.Since(w.jumpAt)) < learnIn || w.failure != "" {
		return
	}
	for _, e := range w.model.live() {
		if late := time.Duration(w.now() - e.dueNanos); e.deadline != 0 && e.state == ready && late > lateBy {
			w.fail("%v has been due for %v, and nobody let it expire", e, late)
		}
	}
	w.checkAllReported()
}
