package alert

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// sink sends one notification.
type sink interface {
	name() string
	// send returns a backoff.PermanentError when trying again is useless.
	send(ctx context.Context, n *notification) error
}

// channel is a sink with the notifications that wait for it.
type channel interface {
	sink
	put(n *notification)
	run(ctx context.Context)
	// trouble says since when nothing gets through, and why; nil if the sink works.
	trouble() *trouble
	queued() int
}

const (
	// maxQueued bounds an outbox. What finds no room is counted, and the count is sent
	// next.
	maxQueued = 1000
	// tryFor is how long a notification is tried. Later ones wait, only the newest of each
	// group.
	tryFor    = 30 * time.Minute
	firstWait = 500 * time.Millisecond
	longWait  = time.Minute
	// burst is how many notifications are sent at once before the rate limit applies.
	burst = 10
)

// outbox holds what waits for a sink that may be slow.
type outbox struct {
	log    *zap.Logger
	counts counters
	limit  *rate.Limiter
	state  condition

	mu      sync.Mutex
	sink    sink
	queue   []*notification
	lost    int64     // dropped since the count was last sent
	lostAt  time.Time // when the first of them was
	arrived chan struct{}
}

// counters are the metrics of one sink.
type counters struct {
	sent, failed, dropped prometheus.Counter
	length                prometheus.Gauge
}

func newOutbox(s sink, limit rate.Limit, m *metrics, log *zap.Logger) *outbox {
	return &outbox{
		sink: s, log: log, counts: m.of(s.name()), limit: rate.NewLimiter(limit, burst),
		arrived: make(chan struct{}, 1),
	}
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

// send sends n once, ahead of those that wait.
func (o *outbox) send(ctx context.Context, n *notification) error { return o.current().send(ctx, n) }

func (o *outbox) trouble() *trouble { return o.state.trouble() }

func (o *outbox) queued() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
}

// put appends n, or replaces an older one of its group that still waits, or counts n if
// there is no room.
func (o *outbox) put(n *notification) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, waiting := range o.queue {
		if n.single == 0 && waiting.single == 0 && waiting.key == n.key {
			o.queue[i] = n
			return
		}
	}
	if len(o.queue) >= maxQueued {
		if o.lost == 0 {
			o.lostAt = time.Now()
		}
		o.lost++
		o.counts.dropped.Inc()
		return
	}
	o.queue = append(o.queue, n)
	o.counts.length.Set(float64(len(o.queue)))
	select {
	case o.arrived <- struct{}{}:
	default:
	}
}

// take removes the next thing to send; nil if there is none.
func (o *outbox) take() *notification {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost > 0 {
		n := newNotification(everything, groupKey{kind: NotificationsDropped}, time.Now())
		n.add(alert{
			key: key{kind: NotificationsDropped}, Stats: Stats{Count: o.lost}, startsAt: o.lostAt,
			severity: kinds[NotificationsDropped].severity, fresh: true,
		})
		o.lost = 0
		return n
	}
	if len(o.queue) == 0 {
		o.queue = nil
		return nil
	}
	n := o.queue[0]
	o.queue = o.queue[1:]
	o.counts.length.Set(float64(len(o.queue)))
	return n
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context) {
	for ctx.Err() == nil {
		if n := o.take(); n != nil {
			o.deliver(ctx, n)
			continue
		}
		select {
		case <-o.arrived:
		case <-ctx.Done():
		}
	}
}

func (o *outbox) deliver(ctx context.Context, n *notification) {
	if o.limit.Wait(ctx) != nil {
		return
	}
	wait := backoff.NewExponentialBackOff() // its pauses are random by half
	wait.InitialInterval, wait.MaxInterval = firstWait, longWait
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := o.send(ctx, n)
		o.state.note(err)
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(tryFor))
	if err == nil {
		o.counts.sent.Inc()
		return
	}
	o.counts.failed.Inc()
	if ctx.Err() == nil {
		o.log.Error("alert not delivered", zap.String("sink", o.name()),
			zap.String("alert_fingerprint", n.fingerprint()), zap.Error(err))
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
