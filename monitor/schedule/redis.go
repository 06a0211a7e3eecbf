package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/monitor/printable"
	"curfew/scheduler"
)

const (
	// lookahead is how far ahead of their deadlines shadows are claimed, to wait on the due
	// list, and how near a deadline must be for its shadow to go there without being
	// written to Redis.
	lookahead = 150 * time.Millisecond
	// lease is how long a claimed shadow stays claimed past the lookahead.
	lease = 10 * time.Second
	// claimBatch is how many are claimed at a time, at most. A claim of 1,000 takes a server
	// 3 ms, during which it does nothing else.
	claimBatch = 1000
	// maxDue bounds the due list. Nothing is claimed while it is full. Shadows too near for
	// Redis are still added; they are in the index, too.
	maxDue = 1 << 16
	// callTimeout bounds a call to Redis.
	callTimeout = 2 * time.Second
)

// errLost says that the schedule went down while it was rebuilt.
var errLost = errors.New("schedule: the schedule was lost while it was rebuilt")

// redisSchedule is the scheduler's view of the schedule in Redis: whether it can be relied
// on, what waits to be written to it, and what is claimed from it.
//
//	               rebuilt                    an error, an overflow,
//	rebuilding ──────────────► up ──────────► another epoch
//	    ▲                                          │
//	    └───────────── it answers ──────── down ◄──┘
//
// It fires only while it is up, and the index fires what it did not fire in time. A schedule
// that is up and let a deadline pass is distrusted: the index fires as if it were down,
// until it has been checked.
type redisSchedule struct {
	store     RedisStore
	now       func() deadline.Instant // the primary's clock
	log       *zap.Logger
	metrics   *metrics
	due       *scheduler.Index
	wakeFire  *wakeup // of the fire loop
	wakeClaim *wakeup // of the claim loop
	checker   chan struct{}
	writer    writer
	every     bool // write every shadow, see record

	distrusted atomic.Bool
	answeredAt atomic.Int64 // Unix µs; the last claim that succeeded
	behind     atomic.Bool  // that claim was full: there is more
	full       atomic.Bool  // the claim loop waits for room on the due list
	resync     atomic.Bool  // events were lost, or may have been
	orphans    atomic.Int64 // shadows that an earlier run left for a primary that is new
	counted    bool         // the orphans have been counted; used by the checker alone

	mu       sync.Mutex
	state    monitor.ScheduleState
	since    time.Time
	reason   string   // why it is not up; empty: it is, or nothing has failed since the start
	reported string   // the last reason that was logged and alerted
	warnings []string // what Check found
	skew     time.Duration
}

func newRedisSchedule(o Options, due *scheduler.Index, wakeFire *wakeup) *redisSchedule {
	return &redisSchedule{
		store:     o.Redis,
		every:     o.WriteWindow < 0,
		now:       o.Primary.Now,
		log:       o.Log.Named("schedule"),
		due:       due,
		wakeFire:  wakeFire,
		wakeClaim: newWakeup(),
		checker:   make(chan struct{}, 1),
		writer:    writer{arrived: make(chan struct{}, 1)},
		state:     monitor.ScheduleDown,
		since:     time.Now(),
	}
}

func (r *redisSchedule) current() monitor.ScheduleState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// report adds to h how the schedule is, and what is wrong, in words; first, why it is not up.
func (r *redisSchedule) report(h *monitor.Health) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var reasons []string
	if r.state != monitor.ScheduleUp && r.reason != "" {
		h.Down = fmt.Sprintf("redis schedule %s: %s", r.state, printable.Plainly(r.reason))
		reasons = append(reasons, h.Down)
	} else if r.distrusted.Load() {
		reasons = append(reasons, "redis schedule stuck: it let deadlines pass, the index fires")
	}
	h.Schedule, h.Since, h.Reasons = r.state, r.since, slices.Concat(reasons, r.warnings, h.Reasons)
	h.Orphans, h.ClockSkew = r.orphans.Load(), r.skew
}

func (r *redisSchedule) up() bool { return r.current() == monitor.ScheduleUp }

// fires reports whether Redis fires, so that the index need not fire at the deadline.
func (r *redisSchedule) fires() bool { return r.up() && !r.distrusted.Load() }

// fail marks the schedule as down and drops what was to be written.
func (r *redisSchedule) fail(operation string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == monitor.ScheduleDown {
		return
	}
	r.writer.close(r.metrics)
	r.enterLocked(monitor.ScheduleDown, fmt.Sprintf("%s: %v", operation, err))
	r.log.Warn("schedule down, the index fires at the deadline",
		zap.String("operation", operation), zap.Error(err))
	r.reported = r.reason
	deadline.Wake(r.checker)
}

// rebuilding lets writes in: shadows put from now on reach Redis.
func (r *redisSchedule) rebuilding() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writer.open()
	r.enterLocked(monitor.ScheduleRebuilding, r.reason)
}

// rebuilt marks the schedule as up, unless it has gone down during the rebuild.
func (r *redisSchedule) rebuilt() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != monitor.ScheduleRebuilding {
		return errLost
	}
	r.enterLocked(monitor.ScheduleUp, "")
	r.reported = ""
	r.answeredAt.Store(int64(r.now()))
	r.distrusted.Store(false)
	r.log.Info("schedule up")
	deadline.Wake(r.wakeClaim.signal)
	return nil
}

// enterLocked changes the state.
func (r *redisSchedule) enterLocked(state monitor.ScheduleState, reason string) {
	r.state, r.since, r.reason = state, time.Now(), reason
	deadline.Wake(r.wakeFire.signal)
}

// stillDown notes why the schedule could not be brought up.
func (r *redisSchedule) stillDown(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, errLost) {
		return // fail said why
	}
	reason := err.Error()
	if r.state == monitor.ScheduleRebuilding {
		r.writer.close(r.metrics)
		r.enterLocked(monitor.ScheduleDown, reason)
	}
	if reason != r.reported {
		r.log.Warn("schedule cannot be brought up, the index fires at the deadline; retrying", zap.Error(err))
	}
	r.reason, r.reported = reason, reason
}

// inspected records the status of the server.
func (r *redisSchedule) inspected(s scheduler.Status) {
	r.metrics.skew.Set(float64(s.SkewMillis) / 1000)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(s.Warnings, r.warnings) {
		for _, w := range s.Warnings {
			r.log.Warn("schedule in danger", zap.String("warning", w))
		}
	}
	r.warnings, r.skew = s.Warnings, time.Duration(s.SkewMillis)*time.Millisecond
}

// requestSync requests a reconciliation of the schedule.
func (r *redisSchedule) requestSync() {
	r.resync.Store(true)
	deadline.Wake(r.checker)
}

// record writes all shadows that were in the feed, then removes those whose messages have left
// their queues by now. kept are the others, in the order of fed. fed is empty unless every shadow
// is to be written.
func (r *redisSchedule) record(fed, kept []deadline.Ref) {
	if len(fed) == 0 {
		return
	}
	r.put(pending{add: fed})
	gone := slices.DeleteFunc(fed, func(s deadline.Ref) bool {
		left := len(kept) == 0 || s != kept[0]
		if !left {
			kept = kept[1:]
		}
		return !left
	})
	r.put(pending{remove: gone})
}

// add puts the near shadows on the due list, and the others into the backlog unless record has
// put them there. It reorders them.
func (r *redisSchedule) add(ctx context.Context, shadows []deadline.Ref, again bool) error {
	nearUntil := r.now().Add(lookahead)
	near := 0
	for i, s := range shadows {
		if s.Deadline <= nearUntil {
			shadows[near], shadows[i] = s, shadows[near]
			near++
		}
	}
	switch {
	case again:
		r.put(pending{again: shadows[near:]})
	case !r.every:
		r.put(pending{add: shadows[near:]})
	}
	if near == 0 {
		return nil
	}
	if err := r.due.Apply(ctx, shadows[:near], nil); err != nil {
		return fmt.Errorf("schedule: due list: %w", err)
	}
	return nil
}

// remove removes shadows from wherever add and the claim loop put them.
func (r *redisSchedule) remove(ctx context.Context, shadows []deadline.Ref) error {
	r.put(pending{remove: shadows})
	if err := r.due.Apply(ctx, nil, shadows); err != nil {
		return fmt.Errorf("schedule: due list: %w", err)
	}
	return nil
}

func (r *redisSchedule) put(more pending) {
	dropped, full := r.writer.put(more)
	if dropped > 0 {
		r.metrics.writesDropped.Add(float64(dropped))
	}
	if full {
		r.fail("write", errBacklog)
	}
}
