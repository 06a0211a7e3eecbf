package monitor

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
)

const (
	// Heartbeat is about how often a loop gives a sign of life, at least: at each full second (deadline.UntilSecond).
	Heartbeat = time.Second
	// staleAfter is when a silent loop counts as hung.
	staleAfter = 5 * time.Second
	// steadyAfter is how long a loop must have run for its next failure to count
	// as the first.
	steadyAfter = time.Minute
)

// Loop is a goroutine that ends only with its context: if anything else ends it, a
// supervisor starts it again.
type Loop struct {
	name string
	run  func(context.Context, *Loop) error
	beat atomic.Int64 // Unix ns of the last sign of life
	idle atomic.Bool  // it waits for something that may take any length of time
}

// AddLoop adds a loop for Run to run. It is called before Run.
func (m *Monitor) AddLoop(name string, run func(context.Context, *Loop) error) *Loop {
	l := &Loop{name: name, run: run}
	m.loops = append(m.loops, l)
	promauto.With(m.options.Registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "curfew_scheduler_last_tick_timestamp_seconds", Help: "When a loop of the monitor was last alive.", ConstLabels: prometheus.Labels{"loop": name},
	}, func() float64 { return float64(l.LastTick().UnixMilli()) / 1000 })
	return l
}

// Idle says that the loop waits for something that may take any length of time, or no longer does.
func (l *Loop) Idle(on bool) { l.idle.Store(on) }

// Tick is the sign of life.
func (l *Loop) Tick() { l.beat.Store(time.Now().UnixNano()) }

// LastTick is the last sign of life; while the loop is idle, it is now.
func (l *Loop) LastTick() time.Time {
	if l.idle.Load() {
		return time.Now()
	}
	return time.Unix(0, l.beat.Load())
}

// Wait waits for d, during which the loop does not count as silent; false if ctx ended first.
func (l *Loop) Wait(ctx context.Context, d time.Duration) bool {
	l.idle.Store(true)
	defer func() {
		l.Tick()
		l.idle.Store(false)
	}()
	return deadline.Sleep(ctx, d)
}

// supervise runs l until ctx ends. A loop that returns or panics before that is logged,
// counted and started again after a pause that grows from 100 ms to 10 s.
func (m *Monitor) supervise(ctx context.Context, l *Loop) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 10*time.Second
	for {
		started := time.Now()
		l.Tick()
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
		if !deadline.Sleep(ctx, pause.NextBackOff()) {
			return
		}
		m.options.Restarted()
	}
}

// attempt runs l once and makes an error of a panic.
func (l *Loop) attempt(ctx context.Context) (err error) {
	defer func() {
		l.idle.Store(false)
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return l.run(ctx, l)
}
