package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"curfew/broker/deadline"
	"curfew/monitor"
)

const (
	// syncRate is how many shadows a second a rebuild writes, at most. A server takes
	// some 250,000 from one connection; the rest is for live traffic.
	syncRate = 50_000
	// reconcilePause is the least time between the end of one reconciliation of the
	// index and the start of the next, so that a feed that always lags does not
	// keep the primary busy with snapshots.
	reconcilePause = time.Second
)

// requestReconcile requests a reconciliation of the index and of the schedule in Redis.
func (m *Scheduler) requestReconcile() {
	deadline.Wake(m.wanted)
	if m.redis != nil {
		m.redis.requestSync()
	}
}

// reconcile reconciles the index at the start and whenever that is requested.
func (m *Scheduler) reconcile(ctx context.Context, l *monitor.Loop) error {
	for {
		l.Tick()
		if err := m.fill(ctx, l.Tick); err != nil {
			return err
		}
		l.Idle(true)
		if !deadline.Sleep(ctx, reconcilePause) {
			return nil
		}
		select {
		case <-m.wanted:
		case <-ctx.Done():
			return nil
		}
		l.Idle(false)
	}
}

// fill makes the index match the primary.
func (m *Scheduler) fill(ctx context.Context, tick func()) error {
	p := &pager{tick: tick, track: m.primary.Track, remove: m.forget}
	p.restore = func(ctx context.Context, shadows []deadline.Ref) error {
		return m.admit(ctx, shadows, true)
	}
	p.add = func(ctx context.Context, shadows []deadline.Ref) error {
		if err := m.index.Apply(ctx, shadows, nil); err != nil {
			return fmt.Errorf("schedule: index: %w", err)
		}
		m.wakeFire.wakeFor(earliest(shadows))
		return nil
	}
	queued, err := p.upsert(ctx, m.primary.Snapshot)
	if err != nil {
		return err
	}
	orphans, err := p.sweep(ctx, m.index.Scan)
	if err != nil {
		return err
	}
	m.log.Info("index filled", zap.Int("queued", queued), zap.Int("orphans", orphans))
	return nil
}

// sync makes the schedule in Redis match the primary, and counts the differences. While
// messages come and go, the count of missing shadows is an estimate.
func (m *Scheduler) sync(ctx context.Context, r *redisSchedule, tick func()) error {
	limit := rate.NewLimiter(syncRate, pageSize)
	p := &pager{tick: tick, track: m.primary.Track}
	p.remove = func(ctx context.Context, shadows []deadline.Ref) error {
		return r.apply(ctx, nil, shadows)
	}
	p.add = func(ctx context.Context, shadows []deadline.Ref) error {
		if r.current() == monitor.ScheduleDown {
			return errLost
		}
		if err := limit.WaitN(ctx, len(shadows)); err != nil {
			return err
		}
		return r.apply(ctx, shadows, nil)
	}
	p.restore = p.add
	orphans, err := p.sweep(ctx, r.store.Scan)
	if err != nil {
		return err
	}
	queued, err := p.upsert(ctx, m.primary.Snapshot)
	if err != nil {
		return err
	}
	missing := max(queued-p.known, 0)
	m.metrics.missing.Add(float64(missing))
	m.metrics.orphans.Add(float64(orphans))
	deadline.Wake(r.wakeClaim.signal)
	m.log.Info("schedule reconciled",
		zap.Int("queued", queued), zap.Int("missing", missing), zap.Int("orphans", orphans))
	return nil
}

// pageSize is how many shadows are asked about or written in one call, at most.
const pageSize = 1024

// pages calls fn with shadows, a page at a time.
type pages func(ctx context.Context, fn func(page []deadline.Ref) error) error

// pager brings one store in line with the primary, a page at a time, while both go on
// changing. See doc.go for why the order of its steps loses nothing.
type pager struct {
	tick   func() // says that there is progress
	track  func([]deadline.Ref) []deadline.Ref
	add    func(context.Context, []deadline.Ref) error
	remove func(context.Context, []deadline.Ref) error
	// restore adds what was removed and exists again: its message was rescheduled, and then
	// got its old deadline back.
	restore func(context.Context, []deadline.Ref) error

	known int // swept over and queued
	asked []deadline.Ref
	gone  []deadline.Ref
}

// sweep removes what the primary does not have, and returns how many shadows that were.
func (p *pager) sweep(ctx context.Context, scan pages) (orphans int, err error) {
	err = scan(ctx, func(page []deadline.Ref) error {
		for some := range slices.Chunk(page, pageSize) {
			n, err := p.removeGone(ctx, some)
			orphans += n
			if p.known += len(some) - n; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("schedule: sweep: %w", err)
	}
	return orphans, nil
}

// upsert adds what the primary has, and returns how many shadows those are.
func (p *pager) upsert(ctx context.Context, snapshot pages) (queued int, err error) {
	err = snapshot(ctx, func(page []deadline.Ref) error {
		for some := range slices.Chunk(valid(page), pageSize) {
			if err := p.add(ctx, some); err != nil {
				return err
			}
			n, err := p.removeGone(ctx, some)
			if queued += len(some) - n; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("schedule: snapshot: %w", err)
	}
	return queued, nil
}

// removeGone removes those that are no longer queued.
func (p *pager) removeGone(ctx context.Context, some []deadline.Ref) (int, error) {
	p.tick()
	p.asked = append(p.asked[:0], some...)
	kept := p.track(p.asked)
	p.gone = p.gone[:0]
	for _, s := range some {
		if len(kept) > 0 && kept[0] == s {
			kept = kept[1:]
		} else {
			p.gone = append(p.gone, s)
		}
	}
	if len(p.gone) == 0 {
		return 0, nil
	}
	p.asked = append(p.asked[:0], p.gone...)
	if err := p.remove(ctx, p.gone); err != nil {
		return 0, err
	}
	if back := p.track(p.asked); len(back) > 0 {
		return len(p.gone), p.restore(ctx, back)
	}
	return len(p.gone), nil
}
