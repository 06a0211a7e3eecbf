package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// checkEvery is how often the schedule in Redis is compared with the index.
	checkEvery = time.Minute
	// checkPause is the least time between two looks at it.
	checkPause = time.Second
)

var errEpoch = errors.New("what Redis holds is not what was written: it was emptied, restored or replaced")

// keeper brings the schedule in Redis up, checks it, and reconciles it.
type keeper struct {
	m         *Monitor
	r         *redisSchedule
	tick      func()                      // of the loop: rebuilding takes its time
	pause     *backoff.ExponentialBackOff // between attempts to bring it up
	notBefore time.Time                   // the next look
}

// keep checks the schedule every minute, and whenever it has failed, has let a deadline
// pass, or may have lost events.
func (m *Monitor) keep(ctx context.Context, l *loop) error {
	k := &keeper{m: m, r: m.redis, tick: l.tick, pause: backoff.NewExponentialBackOff()}
	k.pause.InitialInterval, k.pause.MaxInterval = 250*time.Millisecond, 10*time.Second
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.idle.Store(true)
		select {
		case <-timer.C:
		case <-k.r.keeper:
		case <-ctx.Done():
			return nil
		}
		l.idle.Store(false)
		l.tick()
		wait := time.Until(k.notBefore)
		if wait <= 0 {
			wait = k.look(ctx)
		}
		timer.Reset(wait)
	}
}

// look checks or rebuilds, and returns when to look again.
func (k *keeper) look(ctx context.Context) time.Duration {
	var err error
	if k.r.up() {
		k.pause.Reset()
		k.notBefore = time.Now().Add(checkPause)
		err = k.check(ctx)
	} else {
		err = k.rebuild(ctx)
		k.notBefore = time.Now().Add(k.pause.NextBackOff())
	}
	switch {
	case ctx.Err() != nil || err == nil:
		return checkEvery
	case k.r.up():
		k.r.fail("check", err)
	default:
		k.r.stillDown(err)
	}
	return time.Until(k.notBefore)
}

// rebuild brings the schedule up: it takes ownership if it does not have it, lets writes
// in, and reconciles.
func (k *keeper) rebuild(ctx context.Context) error {
	if err := k.inspect(ctx); err != nil {
		return err
	}
	ok, err := k.epoch(ctx)
	if err != nil {
		return err
	}
	if !ok {
		if err := k.begin(ctx); err != nil {
			return err
		}
	}
	k.r.resync.Store(false)
	k.r.rebuilding()
	if err := k.m.sync(ctx, k.r, k.tick); err != nil {
		return err
	}
	return k.r.rebuilt()
}

// check compares what is stored with the index, and reconciles if they differ or events
// were lost.
func (k *keeper) check(ctx context.Context) error {
	if err := k.inspect(ctx); err != nil {
		return err
	}
	ok, err := k.epoch(ctx)
	if err != nil {
		return err
	}
	if !ok {
		k.r.fail("check", errEpoch)
		return k.rebuild(ctx)
	}
	differs, err := k.differs(ctx)
	if err != nil {
		return err
	}
	if differs || k.r.resync.Swap(false) {
		if err := k.m.sync(ctx, k.r, k.tick); err != nil {
			return err
		}
	}
	k.r.trust()
	return nil
}

// differs compares the number of stored shadows with that in the index, allowing for what
// is on its way. It reads in the reverse order of writing: the backlog and the due list
// change before the index does. What is on the due list may or may not be stored.
func (k *keeper) differs(ctx context.Context) (bool, error) {
	_, written := k.r.writer.progress()
	indexed, err := k.m.index.Len(ctx)
	if err != nil {
		return false, fmt.Errorf("monitor: index: %w", err)
	}
	due, err := k.r.due.Len(ctx)
	if err != nil {
		return false, fmt.Errorf("monitor: due list: %w", err)
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := k.r.store.Len(call)
	if err != nil {
		return false, fmt.Errorf("count: %w", err)
	}
	taken, _ := k.r.writer.progress()
	difference := max(stored-indexed, indexed-stored)
	return difference > due+int64(taken-written), nil
}

// inspect looks at the server.
func (k *keeper) inspect(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	status, err := k.r.store.Check(call)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	k.r.inspected(status)
	return nil
}

func (k *keeper) epoch(ctx context.Context) (bool, error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ok, err := k.r.store.Epoch(call)
	if err != nil {
		return false, fmt.Errorf("read the epoch: %w", err)
	}
	return ok, nil
}

func (k *keeper) begin(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := k.r.store.Begin(call); err != nil {
		return fmt.Errorf("take possession: %w", err)
	}
	k.r.log.Info("schedule taken into possession, bringing it up to date")
	return nil
}
