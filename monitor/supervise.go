package monitor

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
)

const (
	// heartbeat is how often a loop gives a sign of life, at least.
	heartbeat = time.Second
	// staleAfter is when a silent loop counts as hung.
	staleAfter = 5 * time.Second
	// steadyAfter is how long a loop must have run for its next failure to count
	// as the first.
	steadyAfter = time.Minute
)

// loop is a goroutine that ends only with its context: if anything else ends it, a
// supervisor starts it again.
type loop struct {
	name string
	run  func(context.Context, *loop) error
	beat atomic.Int64 // Unix ns of the last sign of life
	idle atomic.Bool  // it waits for something that may take any length of time
}

// tick is the sign of life.
func (l *loop) tick() { l.beat.Store(time.Now().UnixNano()) }

// lastTick is the last sign of life; while the loop is idle, it is now.
func (l *loop) lastTick() time.Time {
	if l.idle.Load() {
		return time.Now()
	}
	return time.Unix(0, l.beat.Load())
}

// wait waits for d, during which the loop does not count as silent; false if ctx ended first.
func (l *loop) wait(ctx context.Context, d time.Duration) bool {
	l.idle.Store(true)
	defer func() {
		l.tick()
		l.idle.Store(false)
	}()
	return sleep(ctx, d)
}

// supervise runs l until ctx ends. A loop that returns or panics before that is logged,
// counted and started again after a pause that grows from 100 ms to 10 s.
func (m *Monitor) supervise(ctx context.Context, l *loop) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 10*time.Second
	for {
		started := time.Now()
		l.tick()
		err := l.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > steadyAfter {
			pause.Reset()
		}
		m.metrics.restarts.WithLabelValues(l.name).Inc()
		m.restarts.Add(1)
		m.log.Error("loop ended, starting it again", zap.String("loop", l.name), zap.Error(err))
		if !sleep(ctx, pause.NextBackOff()) {
			return
		}
		// Shadows that it held may be lost.
		m.requestReconcile()
	}
}

// attempt runs l once and makes an error of a panic.
func (l *loop) attempt(ctx context.Context) (err error) {
	defer func() {
		l.idle.Store(false)
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return l.run(ctx, l)
}

// sleep waits for d; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
