package schedule

import (
	"context"
	"fmt"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/scheduler"
)

// claim moves shadows from Redis to the due list a little ahead of their deadlines, so that
// they fire by the local timer: a round trip takes longer than a deadline may be late. It
// wakes when half of the lookahead is used up, when a nearer deadline was written, and at
// least every second. An error marks the schedule as down; it does not end the loop.
func (r *redisSchedule) claim(ctx context.Context, l *monitor.Loop) error {
	buf := make([]deadline.Ref, 0, claimBatch)
	timer := time.NewTimer(monitor.Heartbeat)
	defer timer.Stop()
	var refreshed time.Time
	for ctx.Err() == nil {
		l.Tick()
		if r.current() != monitor.ScheduleDown && time.Since(refreshed) >= scheduler.RefreshEvery {
			refreshed = time.Now()
			r.refresh(ctx)
		}
		r.wakeClaim.reset()
		wakeAt, err := r.claimDue(ctx, buf)
		if err != nil {
			return err
		}
		r.wakeClaim.sleepUntil(wakeAt)
		wait := wakeAt.Sub(r.now())
		if wait <= 0 {
			continue
		}
		timer.Reset(min(wait, deadline.UntilSecond(time.Now())))
		select {
		case <-timer.C:
		case <-r.wakeClaim.signal:
		case <-ctx.Done():
		}
	}
	return nil
}

// refresh renews the ownership before it lapses.
func (r *redisSchedule) refresh(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := r.store.Refresh(call); err != nil && ctx.Err() == nil {
		r.fail("renew ownership", err)
	}
}

// claimDue claims one batch and returns when to claim again.
func (r *redisSchedule) claimDue(ctx context.Context, buf []deadline.Ref) (wakeAt deadline.Instant, err error) {
	nowAt := r.now()
	laterAt := nowAt.Add(monitor.Heartbeat)
	if !r.up() {
		return laterAt, nil
	}
	if r.full.Store(r.due.Length() >= maxDue); r.full.Load() {
		r.answeredAt.Store(int64(nowAt))
		return laterAt, nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	untilAt := nowAt.Add(lookahead)
	claimed, nextAt, err := r.store.Claim(call, untilAt, claimBatch, untilAt.Add(lease), buf)
	if err != nil {
		if ctx.Err() == nil {
			r.fail("claim", err)
		}
		return laterAt, nil
	}
	behind := nextAt != 0 && nextAt <= untilAt
	r.behind.Store(behind)
	r.answeredAt.Store(int64(r.now()))
	if len(claimed) > 0 {
		if err := r.due.Apply(ctx, claimed, nil); err != nil {
			return 0, fmt.Errorf("schedule: due list: %w", err)
		}
		r.wakeFire.wakeFor(earliest(claimed))
	}
	switch {
	case behind:
		return nowAt, nil
	case nextAt == 0:
		return laterAt, nil
	default:
		return min(max(nextAt.Add(-lookahead/2), nowAt+1), laterAt), nil
	}
}
