package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor"
)

const (
	// checkEvery is how often the schedule in Redis is compared with the index.
	checkEvery = time.Minute
	// checkPause is the least time between two such comparisons.
	checkPause = time.Second
)

var errEpoch = errors.New("what Redis holds is not what was written: it was emptied, restored or replaced")

// checker brings the schedule in Redis up, checks it, and reconciles it.
type checker struct {
	m         *Scheduler
	r         *redisSchedule
	tick      func()                      // of the loop: rebuilding takes long
	pause     *backoff.ExponentialBackOff // between attempts to bring it up
	notBefore time.Time                   // the earliest time of the next round
}

// checkRedis checks the schedule every minute, and whenever it has failed, has let a deadline
// pass, or may have lost events.
func (m *Scheduler) checkRedis(ctx context.Context, l *monitor.Loop) error {
	c := &checker{m: m, r: m.redis, tick: l.Tick, pause: backoff.NewExponentialBackOff()}
	c.pause.InitialInterval, c.pause.MaxInterval = 250*time.Millisecond, 10*time.Second
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.Idle(true)
		select {
		case <-timer.C:
		case <-c.r.checker:
		case <-ctx.Done():
			return nil
		}
		l.Idle(false)
		l.Tick()
		wait := time.Until(c.notBefore)
		if wait <= 0 {
			wait = c.round(ctx)
		}
		timer.Reset(wait)
	}
}

// round checks or rebuilds the schedule, and returns how long to wait for the next round.
func (c *checker) round(ctx context.Context) time.Duration {
	var err error
	if c.r.up() {
		c.pause.Reset()
		c.notBefore = time.Now().Add(checkPause)
		err = c.check(ctx)
	} else {
		err = c.rebuild(ctx)
		c.notBefore = time.Now().Add(c.pause.NextBackOff())
	}
	switch {
	case ctx.Err() != nil || err == nil:
		return checkEvery
	case c.r.up():
		c.r.fail("check", err)
	default:
		c.r.stillDown(err)
	}
	return time.Until(c.notBefore)
}

// rebuild brings the schedule up: it takes ownership if it does not have it, lets writes
// in, and reconciles.
func (c *checker) rebuild(ctx context.Context) error {
	if err := c.inspect(ctx); err != nil {
		return err
	}
	ok, err := ask(ctx, "read the epoch", c.r.store.Epoch)
	if err != nil {
		return err
	}
	if !ok {
		if err := c.begin(ctx); err != nil {
			return err
		}
	}
	if err := c.countOrphans(ctx); err != nil {
		return err
	}
	c.r.resync.Store(false)
	c.r.rebuilding()
	if err := c.m.sync(ctx, c.r, c.tick); err != nil {
		return err
	}
	return c.r.rebuilt()
}

// countOrphans counts the shadows that an earlier run of this instance left in Redis, if the
// primary is new. This run has written none yet.
func (c *checker) countOrphans(ctx context.Context) error {
	if !c.m.options.PrimaryIsNew || c.r.counted {
		return nil
	}
	n, err := ask(ctx, "count", c.r.store.Len)
	if err != nil {
		return err
	}
	c.r.counted = true
	if n > 0 {
		c.r.orphans.Store(n)
		c.r.log.Error("the data folder was new at this start, but Redis has deadlines of this instance: their messages are not here. "+
			"If they should be, stop Curfew, mount the volume or correct CURFEW_DATA_DIR, and start it again", zap.Int64("deadlines", n))
	}
	return nil
}

// check compares what is stored with the index, and reconciles if they differ or events
// were lost.
func (c *checker) check(ctx context.Context) error {
	if err := c.inspect(ctx); err != nil {
		return err
	}
	ok, err := ask(ctx, "read the epoch", c.r.store.Epoch)
	if err != nil {
		return err
	}
	if !ok {
		c.r.fail("check", errEpoch)
		return c.rebuild(ctx)
	}
	differs, err := c.differs(ctx)
	if err != nil {
		return err
	}
	if differs || c.r.resync.Swap(false) {
		if err := c.m.sync(ctx, c.r, c.tick); err != nil {
			return err
		}
	}
	if c.r.distrusted.Swap(false) { // it may fire again
		deadline.Wake(c.r.wakeClaim.signal)
	}
	return nil
}

// differs compares the number of stored shadows with that in the index, allowing for what
// is on its way. It reads in the reverse order of writing: the backlog and the due list
// change before the index does. What is on the due list may or may not be stored.
func (c *checker) differs(ctx context.Context) (bool, error) {
	_, written := c.r.writer.progress()
	indexed, due := c.m.index.Length(), c.r.due.Length()
	stored, err := ask(ctx, "count", c.r.store.Len)
	if err != nil {
		return false, err
	}
	taken, _ := c.r.writer.progress()
	difference := max(stored-indexed, indexed-stored)
	return difference > due+int64(taken-written), nil
}

// inspect checks the server.
func (c *checker) inspect(ctx context.Context) error {
	status, err := ask(ctx, "inspect", c.r.store.Check)
	if err == nil {
		c.r.inspected(status)
	}
	return err
}

func (c *checker) begin(ctx context.Context) error {
	_, err := ask(ctx, "take ownership", func(call context.Context) (struct{}, error) { return struct{}{}, c.r.store.Begin(call) })
	if err == nil {
		c.r.log.Info("schedule owned, bringing it up to date")
	}
	return err
}

// ask makes a bounded call to Redis.
func ask[T any](ctx context.Context, what string, fn func(context.Context) (T, error)) (answer T, err error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if answer, err = fn(call); err != nil {
		return answer, fmt.Errorf("%s: %w", what, err)
	}
	return answer, nil
}
