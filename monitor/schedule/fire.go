package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/scheduler"
)

const (
	// fireBatch is how many shadows are claimed in one turn of the loop, at most, and how many messages the primary is asked to expire at a time. The
	// turns go round the virtual hosts, and their queues, so that many deadlines of one do not hold up those of another.
	fireBatch = 256
	// fireEvery is the least time between two batches, unless more is due than fits in one.
	// Waking for a deadline costs more than firing it. So the deadlines of a busy queue
	// share a wake-up, and are late by at most that much.
	fireEvery = 250 * time.Microsecond
	// rescueAfter is how far past its deadline a shadow must be for the index to
	// fire in place of a Redis schedule that is up.
	rescueAfter = 250 * time.Millisecond
	// retryAfter is when the primary is asked again if there was no answer.
	retryAfter = time.Second
	// askedAfter is when the primary is asked again about a message that a consumer holds. The primary reports the expiry by itself; this is for a report that got lost.
	askedAfter = 30 * time.Second
)

// firing is what the fire loop works with.
type firing struct {
	m       *Scheduler
	batch   []deadline.Ref
	results []deadline.Answer
	most    int              // shadows in a batch; 0 while the loop rests
	restsAt deadline.Instant // when the rest ends
	expired bool             // something of the last batch

	// What became of the batch.
	done   []deadline.Ref // expired, gone, or with another deadline
	held   []scheduler.Later
	notDue []scheduler.Later // not due, or not answered
	busy   []deadline.Ref    // their queue was in use
}

// fire sleeps until the earliest deadline and asks the primary to expire what is due.
func (m *Scheduler) fire(ctx context.Context, l *monitor.Loop) error {
	f := &firing{m: m}
	m.goOn() // an earlier run of the loop may have taken answers and not recorded them
	timer, err := m.options.NewTimer()
	if err != nil {
		return err
	}
	defer timer.Stop()
	for ctx.Err() == nil {
		l.Tick()
		m.wakeFire.reset()
		nextAt, err := f.round(ctx)
		if err != nil {
			return err
		}
		wait := deadline.UntilSecond(time.Now())
		if nextAt != 0 {
			m.wakeFire.sleepUntil(nextAt) // the primary's clock rounds down, so the wait is rounded up
			if wait = min(wait, nextAt.Sub(m.primary.Now())); wait <= 0 {
				continue
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-m.wakeFire.signal:
		case <-ctx.Done():
		}
	}
	return nil
}

// round fires one batch of what is due from each store, unless the loop rests, and returns when to
// look again: at once if anything was due, since what was put off may be next; 0 when no
// deadline is known.
func (f *firing) round(ctx context.Context) (nextAt deadline.Instant, err error) {
	if err := f.recordAnswers(ctx); err != nil {
		return 0, err
	}
	nowAt := f.m.primary.Now()
	f.most = fireBatch
	if nowAt < f.restsAt {
		f.most = 0
	}
	var fired bool
	var dueAt deadline.Instant
	if f.m.redis != nil {
		if fired, dueAt, err = f.from(ctx, f.m.due, nowAt, deadline.Eager); err != nil {
			return nowAt, err
		}
		if (dueAt == 0 || dueAt > nowAt) && f.m.redis.full.Load() { // the claim loop waits for room
			deadline.Wake(f.m.redis.wakeClaim.signal)
		}
	}
	path, grace := f.m.indexFires()
	rescued, indexAt, err := f.from(ctx, f.m.index, nowAt.Add(-grace), path)
	if err != nil || fired || rescued {
		return nowAt, err
	}
	f.m.nextAt.Store(int64(earlier(dueAt, indexAt)))
	if indexAt != 0 {
		indexAt = indexAt.Add(grace)
	}
	if nextAt = earlier(dueAt, indexAt); nextAt != 0 {
		nextAt = max(nextAt, f.restsAt)
	}
	return nextAt, nil
}

// earlier of two instants, 0 being never.
func earlier(a, b deadline.Instant) deadline.Instant {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// indexFires returns how long after a deadline the index fires, and by which path.
func (m *Scheduler) indexFires() (path deadline.Path, grace time.Duration) {
	r := m.redis
	switch {
	case r == nil:
		return deadline.Eager, 0
	case !r.fires():
		return deadline.Index, 0
	// A schedule that is up has no excuse for a deadline it let pass if it does not answer, or says that it has nothing more to claim.
	case !r.behind.Load() || r.now().Sub(deadline.Instant(r.answeredAt.Load())) > rescueAfter:
		return deadline.Stalled, rescueAfter
	}
	return deadline.Index, rescueAfter
}

// recordAnswers records what has been answered for queues that were in use, and goes on with these.
func (f *firing) recordAnswers(ctx context.Context) error {
	for _, x := range f.m.busy.answers() {
		f.batch, f.results = append(f.batch[:0], x.refs...), append(f.results[:0], x.answers...)
		if err := f.record(ctx, x.path); err != nil {
			return err
		}
		f.m.hold(x.refs[0].Queue, false)
	}
	return nil
}

// from fires a batch from one store, and returns when the next of the others is due.
func (f *firing) from(ctx context.Context, store scheduler.Store, untilAt deadline.Instant, path deadline.Path) (fired bool, nextAt deadline.Instant, err error) {
	claimedAt := f.m.primary.Now()
	f.batch, nextAt, err = store.Claim(ctx, untilAt, f.most, untilAt.Add(retryAfter), f.batch[:0])
	if err != nil {
		return false, 0, fmt.Errorf("schedule: claim: %w", err)
	}
	if len(f.batch) == 0 {
		return false, nextAt, nil
	}
	if f.results = f.m.primary.Expire(f.batch, path, f.m.stepper != nil, f.results[:0]); len(f.results) != len(f.batch) {
		return false, 0, fmt.Errorf("schedule: the primary answered for %d of %d messages", len(f.results), len(f.batch))
	}
	err = f.record(ctx, path)
	endedAt := f.m.primary.Now()
	f.m.turns.Add(endedAt, endedAt.Sub(claimedAt))
	if more := nextAt != 0 && nextAt <= untilAt; !more && f.expired {
		f.restsAt = claimedAt.Add(fireEvery)
	}
	return true, nextAt, err
}

// record records what became of the batch.
func (f *firing) record(ctx context.Context, path deadline.Path) error {
	f.expired = f.sortAnswers() > 0
	if r := f.m.redis; f.expired && path == deadline.Stalled && !r.distrusted.Swap(true) { // until the schedule has been checked
		r.log.Warn("schedule let deadlines pass; the index fires")
		deadline.Wake(r.wakeFire.signal)
		deadline.Wake(r.checker)
	}
	for len(f.busy) > 0 {
		queue := f.busy[0].Queue
		isOther := func(r deadline.Ref) bool { return r.Queue != queue }
		f.m.waitFor(queue, slices.DeleteFunc(slices.Clone(f.busy), isOther), path)
		f.busy = slices.DeleteFunc(f.busy, func(r deadline.Ref) bool { return r.Queue == queue })
	}
	return f.settle(ctx)
}

// sortAnswers splits the batch by its answers, and returns how many expired. What was not answered is asked again.
func (f *firing) sortAnswers() (expired int) {
	f.done, f.held, f.notDue, f.busy = f.done[:0], f.held[:0], f.notDue[:0], f.busy[:0]
	nowAt := f.m.primary.Now()
	for _, s := range f.batch[len(f.results):] {
		f.notDue = append(f.notDue, scheduler.Later{Ref: s, At: s.Deadline})
	}
	var count [deadline.Outcomes]int
	for i, r := range f.results {
		s := f.batch[i]
		count[r.Outcome]++
		switch r.Outcome {
		case deadline.Expired, deadline.Gone, deadline.Rescheduled:
			f.done = append(f.done, s)
		case deadline.Held:
			f.held = append(f.held, scheduler.Later{Ref: s, At: nowAt.Add(askedAfter)})
		case deadline.NotDue:
			f.notDue = append(f.notDue, scheduler.Later{Ref: s, At: askAgain(r.At, nowAt)})
		case deadline.Busy:
			f.busy = append(f.busy, s)
		}
	}
	for i, n := range count {
		if n > 0 {
			f.m.metrics.results[i].Add(float64(n))
		}
	}
	return count[deadline.Expired]
}

// askAgain returns when to ask the primary again about a message that is due at an instant:
// then, or, if the primary's clock is behind, after the time between two batches.
func askAgain(dueAt, nowAt deadline.Instant) deadline.Instant {
	if dueAt > nowAt {
		return dueAt
	}
	return nowAt.Add(fireEvery)
}

// settle records in every store what became of the batch. Redis is not written for what is
// not due, which stays claimed and on the due list. What waits for its queue stays claimed
// where it was claimed.
func (f *firing) settle(ctx context.Context) error {
	if f.m.redis != nil {
		f.m.redis.put(pending{remove: f.done, later: f.held})
		if err := f.settleDue(ctx); err != nil {
			return err
		}
	}
	if err := f.m.index.Settle(ctx, f.done, append(f.held, f.notDue...)); err != nil {
		return fmt.Errorf("schedule: index: %w", err)
	}
	return nil
}

// settleDue takes the batch off the due list, except for what is not due.
func (f *firing) settleDue(ctx context.Context) error {
	left := f.done
	for _, held := range f.held {
		left = append(left, held.Ref)
	}
	if err := f.m.due.Settle(ctx, left, f.notDue); err != nil {
		return fmt.Errorf("schedule: due list: %w", err)
	}
	return nil
}
