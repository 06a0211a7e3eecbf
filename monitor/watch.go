package monitor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/monitor/alert"
	"curfew/scheduler/redisstore"
)

const (
	// silentAfter is how long an instance may go without a heartbeat.
	silentAfter = 15 * time.Second
	// countEvery is how often it is looked what is due with a silent one.
	countEvery = 10 * time.Second
)

// watcher beats for this instance and sees to it that others do. It compares no
// clocks: silent is whose heartbeat has not changed for a time of this process's own,
// during which it could look whenever it wanted to. While Redis is away, or this
// process stood still, nobody's silence counts.
//
//	           its heartbeat has not changed for 15 s
//	heard ───────────────────────────────────────────► silent ──► told, while it is
//	   ▲                                                 │  │      our turn and
//	   └───────────────── it changes ────────────────────┘  │      deadlines are due
//	forgotten ◄──── nothing is stored, or not registered ───┘
//
// What is due in a silent instance's schedule is told, not fired: only its own primary
// could.
type watcher struct {
	registry Registry
	alerts   *alert.Alerts
	log      *zap.Logger
	every    time.Duration // from one look to the next

	silentAfter, countEvery time.Duration

	lookedAt time.Time // the last look that succeeded; zero after one that failed
	failedAt time.Time

	mu    sync.Mutex // metrics read what the loop changes
	peers map[string]*peer
}

// peer is what is known of another instance.
type peer struct {
	redisstore.Peer
	since     time.Time // it has not changed
	silent    bool
	told      bool // that deadlines are due
	countedAt time.Time
	missed    redisstore.Missed // when that was our turn
}

func newWatcher(registry Registry, o Options, log *zap.Logger) *watcher {
	return &watcher{
		registry:    registry,
		alerts:      o.Alerts,
		log:         log.Named("watch"),
		every:       redisstore.RefreshEvery,
		silentAfter: silentAfter,
		countEvery:  countEvery,
		peers:       make(map[string]*peer),
	}
}

// watch says that this instance lives for as long as its deadlines fire, and looks
// after the others. Errors of Redis do not end it.
func (m *Monitor) watch(ctx context.Context, l *loop) error {
	prunedAt := time.Now()
	for {
		l.tick()
		m.watcher.report(ctx, m.watcher.round(ctx, m.alive(), l.tick))
		if m.redis.up() && time.Since(prunedAt) >= checkEvery {
			prunedAt = time.Now()
			m.redis.names.prune(ctx)
		}
		l.idle.Store(true)
		if !sleep(ctx, m.watcher.every) {
			return nil
		}
		l.idle.Store(false)
	}
}

// alive says that the loop that fires is alive, or has yet to begin.
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

// report logs the first of failures that follow each other.
func (w *watcher) report(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if w.failedAt.IsZero() || time.Since(w.failedAt) > checkEvery {
		w.log.Warn("instances cannot watch each other", zap.Error(err))
	}
	w.failedAt = time.Now()
}

// round beats, looks who else does, and counts what is due with those that do not.
// After an error it leaves the others of them for the next round.
func (w *watcher) round(ctx context.Context, alive bool, tick func()) error {
	found, err := w.look(ctx, alive)
	if err != nil {
		w.lookedAt = time.Time{}
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

func (w *watcher) look(ctx context.Context, alive bool) (found []redisstore.Peer, err error) {
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

// note compares the registry with what it was, and returns the silent instances to
// count again.
func (w *watcher) note(found []redisstore.Peer, now time.Time) (count []*peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	steady := now.Sub(w.lookedAt) <= 2*w.every
	w.lookedAt = now
	for name, p := range w.peers {
		if !slices.ContainsFunc(found, func(f redisstore.Peer) bool { return f.Name == name }) {
			w.heard(p, "instance is no longer registered")
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
			w.heard(p, "instance is back")
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

// heard ends the silence of p, if it was silent. Callers hold mu.
func (w *watcher) heard(p *peer, how string) {
	if p.silent {
		w.log.Info(how, zap.String("peer", p.Name))
	}
	w.retract(p)
	p.silent, p.countedAt, p.missed = false, time.Time{}, redisstore.Missed{}
}

// retract ends what was told of p.
func (w *watcher) retract(p *peer) {
	if p.told {
		w.alerts.Heard(p.Name)
		p.told = false
	}
}

// count looks what is due with p, and tells it if that is this instance's turn.
func (w *watcher) count(ctx context.Context, p *peer) error {
	mine, err := w.registry.Watch(ctx, p.Peer)
	if err != nil {
		return err
	}
	var missed redisstore.Missed
	if mine {
		if missed, err = w.registry.Missed(ctx, p.Peer); err != nil {
			return err
		}
	}
	w.mu.Lock()
	p.missed = missed
	w.mu.Unlock()
	switch {
	case missed.Due > 0:
		p.told = true
		w.alerts.Silent(silence(p.Name, missed))
		return nil
	case mine && missed.Stored == 0:
		err = w.registry.Forget(ctx, p.Peer)
	}
	w.retract(p)
	return err
}

// silence is missed as alerts tell it.
func silence(name string, missed redisstore.Missed) alert.Silence {
	s := alert.Silence{Peer: name, Due: missed.Due, OldestAt: missed.OldestAt, LateMillis: missed.LateMillis}
	for _, q := range missed.Queues {
		if q.Name == "" {
			q.Name = fmt.Sprintf("number %016x", q.Queue)
		}
		s.Queues = append(s.Queues, alert.QueueDue{VHost: q.VHost, Queue: q.Name, Count: q.Count})
	}
	return s
}
