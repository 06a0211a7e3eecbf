package incident

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// sink sends one alert.
type sink interface {
	name() string
	// send returns a backoff.PermanentError when trying again is useless.
	send(ctx context.Context, a *notice) error
}

// channel is a sink with the notifications that wait for it.
type channel interface {
	sink
	put(a *notice)
	run(ctx context.Context)
	// trouble says since when nothing gets through, and why; nil if the sink works.
	trouble() *trouble
	queued() int
}

const (
	// maxQueued bounds an outbox. What finds no room is counted.
	maxQueued = 1000
	// tryFor is how long a notification is tried. Later ones wait, only the newest of each alert.
	tryFor    = 30 * time.Minute
	firstWait = 500 * time.Millisecond
	longWait  = time.Minute
)

// outbox holds what waits for a sink that may be slow.
type outbox struct {
	log    *zap.Logger
	counts counters
	state  condition

	mu      sync.Mutex
	sink    sink
	queue   []*notice
	arrived chan struct{}
}

// counters are the metrics of one sink.
type counters struct {
	sent, failed, dropped prometheus.Counter
	length                prometheus.Gauge
}

func newOutbox(s sink, m *metrics, log *zap.Logger) *outbox {
	return &outbox{sink: s, log: log, counts: m.of(s.name()), arrived: make(chan struct{}, 1)}
}

// use sends the notifications that wait, and those that follow, to another sink of the same name.
func (o *outbox) use(s sink) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sink = s
}

func (o *outbox) current() sink {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sink
}

func (o *outbox) name() string { return o.current().name() }

// send sends a once, ahead of those that wait.
func (o *outbox) send(ctx context.Context, a *notice) error { return o.current().send(ctx, a) }

func (o *outbox) trouble() *trouble { return o.state.trouble() }

func (o *outbox) queued() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
}

// put appends a, or replaces an older state of it that still waits, or counts a if there is no room.
func (o *outbox) put(a *notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := slices.IndexFunc(o.queue, func(waiting *notice) bool { return waiting.ID == a.ID }); n >= 0 {
		o.queue[n] = a
		return
	}
	if len(o.queue) >= maxQueued {
		o.counts.dropped.Inc()
		return
	}
	o.queue = append(o.queue, a)
	o.counts.length.Set(float64(len(o.queue)))
	select {
	case o.arrived <- struct{}{}:
	default:
	}
}

// take removes the next thing to send; nil if there is none.
func (o *outbox) take() *notice {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.queue = nil
		return nil
	}
	a := o.queue[0]
	o.queue = o.queue[1:]
	o.counts.length.Set(float64(len(o.queue)))
	return a
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context) {
	for ctx.Err() == nil {
		if a := o.take(); a != nil {
			o.deliver(ctx, a)
			continue
		}
		select {
		case <-o.arrived:
		case <-ctx.Done():
		}
	}
}

func (o *outbox) deliver(ctx context.Context, a *notice) {
	wait := backoff.NewExponentialBackOff() // its pauses are random by half
	wait.InitialInterval, wait.MaxInterval = firstWait, longWait
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := o.send(ctx, a)
		o.state.note(err)
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(tryFor))
	if err == nil {
		o.counts.sent.Inc()
		return
	}
	o.counts.failed.Inc()
	if ctx.Err() == nil {
		o.log.Error("notification not delivered", zap.String("sink", o.name()),
			zap.String("incident", a.ID), zap.Error(err))
	}
}

// trouble is a sink's last error, and since when the sink has failed.
type trouble struct {
	Since time.Time `json:"since"`
	Error string    `json:"error"`
}

// condition records whether a sink works.
type condition struct {
	mu   sync.Mutex
	fail *trouble
}

func (c *condition) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.fail = nil
	case c.fail == nil:
		c.fail = &trouble{Since: time.Now(), Error: err.Error()}
	default:
		c.fail = &trouble{Since: c.fail.Since, Error: err.Error()}
	}
}

func (c *condition) trouble() *trouble {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fail
}
