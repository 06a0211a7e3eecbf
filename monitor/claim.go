package monitor

import (
	"context"
	"fmt"
	"time"

	"curfew/scheduler"
	"curfew/scheduler/redisstore"
)

// claim moves shadows from Redis to the due list a little ahead of their time, so
// that they fire by the local timer: a round trip costs more than a deadline may be
// late. It wakes when half of what was claimed ahead is used up, for a nearer
// deadline that was written, and every second whatever is known. An error marks the
// schedule as down; it does not end the loop.
func (r *redisSchedule) claim(ctx context.Context, l *loop) error {
	buf := make([]scheduler.Shadow, 0, claimBatch)
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	var refreshed time.Time
	for ctx.Err() == nil {
		l.tick()
		if state, _ := r.current(); state != ScheduleDown && time.Since(refreshed) >= redisstore.RefreshEvery {
			refreshed = time.Now()
			r.refresh(ctx)
		}
		r.claims.reset()
		wakeAt, err := r.claimDue(ctx, buf)
		if err != nil {
			return err
		}
		r.claims.set(wakeAt)
		wait := time.Duration(wakeAt-r.now()) * time.Microsecond
		if wait <= 0 {
			continue
		}
		timer.Reset(min(wait, heartbeat))
		select {
		case <-timer.C:
		case <-r.claims.ring:
		case <-ctx.Done():
		}
	}
	return nil
}

// refresh renews the ownership, which ends when nobody does.
func (r *redisSchedule) refresh(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := r.store.Refresh(call); err != nil && ctx.Err() == nil {
		r.fail("renew ownership", err)
	}
}

// claimDue claims one batch and returns when to claim again, in Unix µs.
func (r *redisSchedule) claimDue(ctx context.Context, buf []scheduler.Shadow) (wakeAt int64, err error) {
	nowAt := r.now()
	laterAt := nowAt + heartbeat.Microseconds()
	if !r.up() {
		return laterAt, nil
	}
	waiting, err := r.due.Len(ctx)
	if err != nil {
		return 0, fmt.Errorf("monitor: due list: %w", err)
	}
	if r.full.Store(waiting >= maxDue); waiting >= maxDue {
		r.answeredAt.Store(nowAt)
		return laterAt, nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	untilAt := nowAt + lookahead.Microseconds()
	claimed, nextAt, err := r.store.Claim(call, untilAt, claimBatch, untilAt+lease.Microseconds(), buf)
	if err != nil {
		if ctx.Err() == nil {
			r.fail("claim", err)
		}
		return laterAt, nil
	}
	r.behind.Store(len(claimed) == claimBatch)
	r.answeredAt.Store(r.now())
	if len(claimed) > 0 {
		if err := r.due.Apply(ctx, claimed, nil); err != nil {
			return 0, fmt.Errorf("monitor: due list: %w", err)
		}
		r.fire.before(earliest(claimed))
	}
	switch {
	case len(claimed) == claimBatch:
		return nowAt, nil
	case nextAt == 0:
		return laterAt, nil
	default:
		return min(max(nextAt-lookahead.Microseconds()/2, nowAt+1), laterAt), nil
	}
}
