package monitor

import (
	"context"
	"fmt"
	"time"

	"curfew/scheduler"
)

const (
	// fireBatch messages are put to the primary at a time, at most.
	fireBatch = 1024
	// fireEvery is the least time between two batches, unless more is due than fits in one.
	// To wake for a deadline costs more than to fire it: those of a busy queue share
	// a wake-up, and are late by that much at the most.
	fireEvery = 250 * time.Microsecond
	// rescueAfter is how far past its deadline a shadow must be for the index to
	// fire in place of a Redis schedule that is up.
	rescueAfter = 250 * time.Millisecond
	// retryAfter is when the index comes back to what the primary failed to
	// answer for.
	retryAfter = time.Second
	// heldAfter is when a message held at its deadline is looked at again. The
	// primary expires it when it is requeued; this is for when that is not told.
	heldAfter = 30 * time.Second
)

// firing is what the fire loop works with.
type firing struct {
	m       *Monitor
	batch   []scheduler.Shadow
	results []Result
	ledger  ledger
	most    int   // of a batch, 0 while the loop rests
	restsAt int64 // Unix µs until which it does

	// What became of the batch.
	done   []scheduler.Shadow // expired or gone
	held   []scheduler.Later
	notDue []scheduler.Later
	failed []scheduler.Later
}

// fire sleeps until the earliest deadline and puts what is due to the primary.
func (m *Monitor) fire(ctx context.Context, l *loop) error {
	f := &firing{m: m, ledger: m.newLedger()}
	timer, err := m.options.NewTimer()
	if err != nil {
		return err
	}
	defer timer.Stop()
	for ctx.Err() == nil {
		l.tick()
		m.alarm.reset()
		nextAt, err := f.round(ctx)
		if err != nil {
			return err
		}
		wait := heartbeat
		if nextAt != 0 {
			m.alarm.set(nextAt)
			if wait = min(wait, m.until(nextAt)); wait <= 0 {
				continue
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C():
		case <-m.alarm.ring:
		case <-ctx.Done():
		}
	}
	return nil
}

// until is how long it takes until the primary's clock shows an instant, rounded up: that
// clock rounds down.
func (m *Monitor) until(at int64) time.Duration {
	return time.Duration(at-m.primary.Now()) * time.Microsecond
}

// round fires one batch of what is due, unless it rests, and returns when to look again,
// in Unix µs: at once if there was anything, since what was put off counts anew; 0
// when no deadline is known. The index is looked at whenever nothing more is on the due
// list, whether or not something was: on a busy queue there always is.
func (f *firing) round(ctx context.Context) (nextAt int64, err error) {
	nowAt := f.m.primary.Now()
	f.most = fireBatch
	if nowAt < f.restsAt {
		f.most = 0
	}
	var fired bool
	var dueAt int64
	if f.m.redis != nil {
		fired, dueAt, err = f.from(ctx, f.m.due, nowAt, Eager)
		if err != nil || len(f.batch) == fireBatch {
			return nowAt, err
		}
		f.m.redis.drained()
	}
	path, grace := f.m.indexFires()
	rescued, indexAt, err := f.from(ctx, f.m.index, nowAt-grace.Microseconds(), path)
	if err != nil || fired || rescued {
		return nowAt, err
	}
	f.m.nextAt.Store(earlier(dueAt, indexAt))
	if indexAt != 0 {
		indexAt += grace.Microseconds()
	}
	if nextAt = earlier(dueAt, indexAt); nextAt != 0 {
		nextAt = max(nextAt, f.restsAt)
	}
	return nextAt, nil
}

// earlier of two instants, 0 being never.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// indexFires says how long after a deadline the index fires, and under which name.
func (m *Monitor) indexFires() (path Path, grace time.Duration) {
	switch {
	case m.redis == nil:
		return Eager, 0
	case m.redis.fires() && m.redis.stuck():
		return Stalled, rescueAfter
	case m.redis.fires():
		return Index, rescueAfter
	default:
		return Index, 0
	}
}

// from fires a batch from one store. If nothing was due, it returns when the next is.
func (f *firing) from(ctx context.Context, store scheduler.Store, untilAt int64, path Path) (fired bool, nextAt int64, err error) {
	claimedAt := f.m.primary.Now()
	f.batch, nextAt, err = store.Claim(ctx, untilAt, f.most, untilAt+retryAfter.Microseconds(), f.batch[:0])
	if err != nil {
		return false, 0, fmt.Errorf("monitor: claim: %w", err)
	}
	if len(f.batch) == 0 {
		return false, nextAt, nil
	}
	f.results = f.m.primary.Expire(f.batch, path, f.results[:0])
	if len(f.results) != len(f.batch) {
		return false, 0, fmt.Errorf("monitor: the primary answered for %d of %d messages", len(f.results), len(f.batch))
	}
	expired := f.sort()
	if expired > 0 && path == Stalled {
		f.m.redis.distrust()
	}
	if expired > 0 && len(f.batch) < fireBatch {
		f.restsAt = claimedAt + fireEvery.Microseconds()
	}
	return true, 0, f.settle(ctx)
}

// sort splits the batch by its results, and returns how many expired.
func (f *firing) sort() (expired int) {
	f.done, f.held, f.notDue, f.failed = f.done[:0], f.held[:0], f.notDue[:0], f.failed[:0]
	nowAt := f.m.primary.Now()
	var count [outcomes]int
	for i, r := range f.results {
		s := f.batch[i]
		count[r.Outcome]++
		switch r.Outcome {
		case Expired:
			f.done = append(f.done, s)
		case Gone:
			f.done = append(f.done, s)
		case Held:
			f.ledger.hold(s, nowAt)
			f.held = append(f.held, scheduler.Later{Shadow: s, At: nowAt + heldAfter.Microseconds()})
		case NotDue:
			f.notDue = append(f.notDue, scheduler.Later{Shadow: s, At: askAgain(r.At, nowAt)})
		case Failed:
			f.failed = append(f.failed, scheduler.Later{Shadow: s, At: nowAt + retryAfter.Microseconds()})
		}
	}
	f.ledger.close()
	f.m.metrics.countResults(&count)
	return count[Expired]
}

// askAgain says when to put a message to the primary again that is due at an instant: then,
// or, if the primary's clock is behind, after the time between two batches.
func askAgain(dueAt, nowAt int64) int64 {
	if dueAt > nowAt {
		return dueAt
	}
	return nowAt + fireEvery.Microseconds()
}

// settle tells every store what became of the batch. Redis hears nothing of what is
// not due, which stays claimed and on the due list, nor of what failed: that comes
// back from the index, and from Redis when the lease has ended.
func (f *firing) settle(ctx context.Context) error {
	if f.m.redis != nil {
		f.m.redis.settle(f.done, f.held)
		if err := f.settleDue(ctx); err != nil {
			return err
		}
	}
	if err := f.m.index.Settle(ctx, f.done, f.held); err != nil {
		return fmt.Errorf("monitor: index: %w", err)
	}
	if len(f.notDue)+len(f.failed) == 0 {
		return nil
	}
	if err := f.m.index.Settle(ctx, nil, append(f.failed, f.notDue...)); err != nil {
		return fmt.Errorf("monitor: index: %w", err)
	}
	return nil
}

// settleDue takes the batch off the due list, but for what is not due.
func (f *firing) settleDue(ctx context.Context) error {
	err := f.m.due.Settle(ctx, f.done, f.notDue)
	for _, later := range [][]scheduler.Later{f.held, f.failed} {
		if err != nil || len(later) == 0 {
			continue
		}
		left := make([]scheduler.Shadow, len(later))
		for i := range later {
			left[i] = later[i].Shadow
		}
		err = f.m.due.Apply(ctx, nil, left)
	}
	if err != nil {
		return fmt.Errorf("monitor: due list: %w", err)
	}
	return nil
}
