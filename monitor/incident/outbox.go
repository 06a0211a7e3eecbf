package incident

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// sink sends notifications.
type sink interface {
	// send returns a backoff.PermanentError when trying again is useless.
	send(ctx context.Context, a *notice) error
}

const (
	// maxQueued bounds an outbox. What finds no room is counted.
	maxQueued = 1000
	// tryFor is how long a notification is tried. Later ones wait, only the newest of each alert.
	tryFor    = 30 * time.Minute
	firstWait = 500 * time.Millisecond
	longWait  = time.Minute
)

// errNothing: there is nothing to send, which says nothing about the sink.
var errNothing = errors.New("nothing to send")

// outbox holds what waits for a sink that may be slow.
type outbox struct {
	name     string
	settings sinkSettings // guarded by delivery.mu, as stop is
	stop     func()       // nil while it does not run
	log      *zap.Logger
	metrics  *metrics
	length   prometheus.Gauge // of metrics

	mu      sync.Mutex
	sink    sink
	queue   []*notice
	fails   *trouble // since when nothing gets through, and why; nil: the sink works
	arrived chan struct{}
}

// send sends a once, ahead of those that wait.
func (o *outbox) send(ctx context.Context, a *notice) error {
	o.mu.Lock()
	s := o.sink
	o.mu.Unlock()
	if _, is := s.(*manager); !is && a.rule == nil {
		return errNothing // a reminder for the Alertmanager that this sink was
	}
	return s.send(ctx, a)
}

func (o *outbox) status() SinkStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	return SinkStatus{o.name, len(o.queue), o.fails}
}

// put appends a, or replaces an older state of it that still waits, or counts a if there is no room. A reminder is only put where nothing waits.
func (o *outbox) put(a *notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.rule == nil && len(o.queue) > 0 {
		return
	}
	if n := slices.IndexFunc(o.queue, func(waiting *notice) bool { return waiting.ID == a.ID }); n >= 0 {
		o.queue[n] = a
		return
	}
	if len(o.queue) >= maxQueued {
		o.metrics.notifications.WithLabelValues(o.name, "dropped").Inc()
		return
	}
	o.queue = append(o.queue, a)
	o.length.Set(float64(len(o.queue)))
	deadline.Wake(o.arrived)
}

// take removes the next thing to send; nil if there is none. An Alertmanager is sent all that fires, whatever the notice, so that those behind it go too.
func (o *outbox) take() *notice {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.queue = nil
		return nil
	}
	a := o.queue[0]
	o.queue = o.queue[1:]
	if _, is := o.sink.(*manager); is && a.Condition != testCondition {
		o.queue = slices.DeleteFunc(o.queue, func(n *notice) bool { return n.Condition != testCondition })
	}
	o.length.Set(float64(len(o.queue)))
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
		if errors.Is(err, errNothing) {
			return struct{}{}, backoff.Permanent(err)
		}
		o.note(err)
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(tryFor))
	switch {
	case err == nil:
		o.metrics.notifications.WithLabelValues(o.name, "sent").Inc()
	case !errors.Is(err, errNothing):
		o.metrics.notifications.WithLabelValues(o.name, "failed").Inc()
		if ctx.Err() == nil {
			o.log.Error("notification not delivered", zap.String("sink", o.name), zap.String("incident", a.ID), zap.Error(err))
		}
	}
}

// trouble is a sink's last error, and since when the sink has failed.
type trouble struct {
	Since time.Time `json:"since"`
	Error string    `json:"error"`
}

func (o *outbox) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.fails = nil
		return
	}
	since := time.Now()
	if o.fails != nil {
		since = o.fails.Since
	}
	o.fails = &trouble{since, err.Error()}
}
