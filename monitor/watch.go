package monitor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/monitor/alert"
	"curfew/scheduler"
)

const (
	// silentAfter is how long an instance may go without a heartbeat.
	silentAfter = 15 * time.Second
	// countEvery is how often the due deadlines of a silent one are counted.
	countEvery = 10 * time.Second
)

// watcher beats for this instance and watches the heartbeats of others. It compares no
// clocks: an instance is silent if its heartbeat has not changed for some time by this
// process's own clock. Time in which Redis was away, or this process stood still, does not
// count.
//
//	           its heartbeat has not changed for 15 s
//	heard ───────────────────────────────────────────► silent ──► alert, while it
//	   ▲                                                 │  │      is our turn and
//	   └───────────────── it changes ────────────────────┘  │      deadlines are due
//	forgotten ◄──── nothing is stored, or not registered ───┘
//
// What is due in a silent instance's schedule is reported, not fired: only its own primary
// could fire it.
type watcher struct {
	registry Registry
	alerts   *alert.Alerts
	log      *zap.Logger
	every    time.Duration // from one round to the next

	silentAfter, countEvery time.Duration

	listedAt time.Time // when peers were last listed; zero after that failed
	failedAt time.Time

	mu    sync.Mutex // metrics read what the loop changes
	peers map[string]*peer
}

// peer is what is known of another instance.
type peer struct {
	scheduler.Peer
	since     time.Time // when it last changed
	silent    bool
	alerted   bool // that deadlines are due; for the loop only, so mu need not be held
	countedAt time.Time
	overdue   scheduler.Overdue // counted when it was our turn
}

func newWatcher(registry Registry, o Options, log *zap.Logger) *watcher {
	return &watcher{
		registry:    registry,
		alerts:      o.Alerts,
		log:         log.Named("watch"),
		every:       scheduler.RefreshEvery,
		silentAfter: silentAfter,
		countEvery:  countEvery,
		peers:       make(map[string]*peer),
	}
}

// watch beats for as long as this instance's deadlines fire, and watches the others. Errors of Redis do not end it.
func (m *Monitor) watch(ctx context.Context, l *loop) error {
	prunedAt := time.Now()
	for {
		l.tick()
		m.watcher.report(ctx, m.watcher.round(ctx, m.alive(), l.tick))
		if m.redis.up() && time.Since(prunedAt) >= checkEvery {
			prunedAt = time.Now()
			m.redis.names.prune(ctx)
		}
		if !l.wait(ctx, m.watcher.every) {
			return nil
		}
	}
}

// alive reports whether the loop that fires is alive, or has yet to begin.
func (m *Monitor) alive() bool {
	fire := m.loops[0]
	return fire.beat.Load() == 0 || time.Since(fire.lastTick()) < staleAfter
}

// within bounds a call to Redis.
func within(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx)
}

// report logs the first of consecutive failures.
func (w *watcher) report(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if w.failedAt.IsZero() || time.Since(w.failedAt) > checkEvery {
		w.log.Warn("instances cannot watch each other", zap.Error(err))
	}
	w.failedAt = time.Now()
}

// round beats, lists the other instances, and counts what is due in the schedules of silent
// ones. After an error the rest of them wait for the next round.
func (w *watcher) round(ctx context.Context, alive bool, tick func()) error {
	found, err := w.beat(ctx, alive)
	if err != nil {
		w.listedAt = time.Time{}
		return err
	}
	for _, p := range w.note(found, time.Now()) {
		tick()
		p.countedAt = time.Now()
		if err := within(ctx, func(ctx context.Context) error { return w.count(ctx, p) }); err != nil {
			return err
		}
	}
	return nil
}

// beat sends a heartbeat if this instance is alive, and lists the others.
func (w *watcher) beat(ctx context.Context, alive bool) (found []scheduler.Peer, err error) {
	if alive {
		if err := within(ctx, w.registry.Beat); err != nil {
			return nil, err
		}
	}
	err = within(ctx, func(ctx context.Context) (err error) {
		found, err = w.registry.Peers(ctx)
		return err
	})
	return found, err
}

// note compares the registry with the last round, and returns the silent instances to count
// again.
func (w *watcher) note(found []scheduler.Peer, now time.Time) (count []*peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	steady := now.Sub(w.listedAt) <= 2*w.every
	w.listedAt = now
	for name, p := range w.peers {
		if !slices.ContainsFunc(found, func(f scheduler.Peer) bool { return f.Name == name }) {
			w.heardLocked(p, "instance is no longer registered")
			delete(w.peers, name)
		}
	}
	for _, f := range found {
		p := w.peers[f.Name]
		switch {
		case p == nil:
			w.peers[f.Name] = &peer{Peer: f, since: now}
			continue
		case p.Peer != f:
			w.heardLocked(p, "instance is back")
			p.Peer, p.since = f, now
		case !steady:
			p.since = now
		case !p.silent && now.Sub(p.since) >= w.silentAfter:
			p.silent = true
			w.log.Warn("instance is silent: it ended, hangs, or cannot reach Redis", zap.String("peer", p.Name),
				zap.String("process", p.Owner), zap.Time("last_heartbeat", time.UnixMilli(p.BeatAt)))
		}
		if p.silent && now.Sub(p.countedAt) >= w.countEvery {
			count = append(count, p)
		}
	}
	return count
}

// heardLocked ends the silence of p, if it was silent.
func (w *watcher) heardLocked(p *peer, how string) {
	if p.silent {
		w.log.Info(how, zap.String("peer", p.Name))
	}
	w.retract(p)
	p.silent, p.countedAt, p.overdue = false, time.Time{}, scheduler.Overdue{}
}

// retract ends the alert about p.
func (w *watcher) retract(p *peer) {
	if p.alerted {
		w.alerts.Heard(p.Name)
		p.alerted = false
	}
}

// count counts what is due in the schedule of p, and reports it if that is this instance's
// turn.
func (w *watcher) count(ctx context.Context, p *peer) error {
	mine, err := w.registry.Watch(ctx, p.Peer)
	if err != nil {
		return err
	}
	var overdue scheduler.Overdue
	if mine {
		if overdue, err = w.registry.CountOverdue(ctx, p.Peer); err != nil {
			return err
		}
	}
	w.mu.Lock()
	p.overdue = overdue
	w.mu.Unlock()
	switch {
	case overdue.Due > 0:
		p.alerted = true
		w.alerts.Silent(silence(p.Name, overdue))
		return nil
	case mine && overdue.Stored == 0:
		err = w.registry.Forget(ctx, p.Peer)
	}
	w.retract(p)
	return err
}

// silence describes for alerts what is overdue with an instance.
func silence(name string, overdue scheduler.Overdue) alert.SilentInstance {
	s := alert.SilentInstance{Peer: name, Due: overdue.Due, OldestAt: overdue.OldestAt, LateMillis: overdue.LateMillis}
	for _, q := range overdue.Queues {
		if q.Name == "" {
			q.Name = fmt.Sprintf("number %016x", q.Queue)
		}
		s.Queues = append(s.Queues, alert.QueueDue{VHost: q.VHost, Queue: q.Name, Count: q.Count})
	}
	return s
}
