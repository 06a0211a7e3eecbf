package alert

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// sink tells one notification.
type sink interface {
	name() string
	// send returns a backoff.PermanentError when trying again is useless.
	send(ctx context.Context, n notification) error
}

// metrics of the sinks.
type metrics struct {
	notifications *prometheus.CounterVec // sink, result: sent, failed, dropped
	queued        *prometheus.GaugeVec   // sink
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "curfew_alert_notifications_total",
			Help: "Notifications by sink and what became of them.",
		}, []string{"sink", "result"}),
		queued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "curfew_alert_queue_length",
			Help: "Notifications waiting for a sink.",
		}, []string{"sink"}),
	}
	for _, c := range []prometheus.Collector{m.notifications, m.queued} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("alert: register metric: %w", err)
		}
	}
	return m, nil
}

// logSink writes one line per notification.
type logSink struct {
	log  *zap.Logger
	sent prometheus.Counter
}

func (*logSink) name() string { return "log" }

func (s *logSink) send(_ context.Context, n notification) error {
	s.sent.Inc()
	fields := n.fields()
	if n.resolved {
		s.log.Info(n.summary(), fields...)
	} else {
		s.log.Warn(n.summary(), fields...)
	}
	return nil
}

func (n notification) fields() []zap.Field {
	fields := []zap.Field{
		zap.String("event", kinds[n.kind].event),
		zap.String("status", n.status()),
		zap.String("alert_fingerprint", n.fingerprint()),
	}
	if n.queue != "" {
		fields = append(fields, zap.String("vhost", n.vhost), zap.String("queue", n.queue))
	}
	if n.action != "" {
		fields = append(fields, zap.String("action", n.action))
	}
	if n.peer != "" {
		fields = append(fields, zap.String("peer", n.peer))
	}
	if n.Count == 0 {
		return fields
	}
	fields = append(fields,
		zap.Int64("count", n.Count),
		zap.Time("first_deadline", time.UnixMilli(n.FirstDeadlineAt)),
		zap.Duration("worst_lateness", time.Duration(n.WorstMillis)*time.Millisecond))
	if n.LastDeadlineAt != 0 {
		fields = append(fields, zap.Time("last_deadline", time.UnixMilli(n.LastDeadlineAt)))
	}
	return fields
}

const (
	// maxQueued bounds an outbox; what finds no room is counted, and the count is
	// the next thing sent.
	maxQueued = 1000
	// A notification is tried for a group interval at most: then there is news.
	maxTries  = 8
	tryFor    = time.Minute
	firstWait = 500 * time.Millisecond
)

// outbox holds what waits for a sink that may be slow.
type outbox struct {
	sink                  sink
	log                   *zap.Logger
	sent, failed, dropped prometheus.Counter
	length                prometheus.Gauge

	mu      sync.Mutex
	queue   []notification
	lost    int64     // dropped since that was last told
	lostAt  time.Time // when the first of them was
	arrived chan struct{}
}

func newOutbox(s sink, m *metrics, log *zap.Logger) *outbox {
	return &outbox{
		sink:    s,
		log:     log,
		sent:    m.notifications.WithLabelValues(s.name(), "sent"),
		failed:  m.notifications.WithLabelValues(s.name(), "failed"),
		dropped: m.notifications.WithLabelValues(s.name(), "dropped"),
		length:  m.queued.WithLabelValues(s.name()),
		arrived: make(chan struct{}, 1),
	}
}

// put appends n, or counts it when there is no room.
func (o *outbox) put(n notification) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) >= maxQueued {
		if o.lost == 0 {
			o.lostAt = time.Now()
		}
		o.lost++
		o.dropped.Inc()
		return
	}
	o.queue = append(o.queue, n)
	o.length.Set(float64(len(o.queue)))
	select {
	case o.arrived <- struct{}{}:
	default:
	}
}

// take removes the next thing to send.
func (o *outbox) take() (notification, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost > 0 {
		n := notification{key: key{kind: NotificationsDropped}, startsAt: o.lostAt}
		n.Count, o.lost = o.lost, 0
		return n, true
	}
	if len(o.queue) == 0 {
		o.queue = nil
		return notification{}, false
	}
	n := o.queue[0]
	o.queue = o.queue[1:]
	o.length.Set(float64(len(o.queue)))
	return n, true
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context) {
	for ctx.Err() == nil {
		n, ok := o.take()
		if ok {
			o.deliver(ctx, n)
			continue
		}
		select {
		case <-o.arrived:
		case <-ctx.Done():
		}
	}
}

func (o *outbox) deliver(ctx context.Context, n notification) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval = firstWait
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, o.sink.send(ctx, n)
	}, backoff.WithBackOff(wait), backoff.WithMaxTries(maxTries), backoff.WithMaxElapsedTime(tryFor))
	if err == nil {
		o.sent.Inc()
		return
	}
	o.failed.Inc()
	if ctx.Err() == nil {
		o.log.Error("alert not delivered", zap.String("sink", o.sink.name()),
			zap.String("alert_fingerprint", n.fingerprint()), zap.Error(err))
	}
}
