package alert

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// logSink writes one line per notification, at once.
type logSink struct {
	log  *zap.Logger
	sent prometheus.Counter
}

func (s *logSink) notify(n *notification) {
	s.sent.Inc()
	if n.resolved() {
		s.log.Info(n.summary(), n.fields()...)
	} else {
		s.log.Warn(n.summary(), n.fields()...)
	}
}

func (n *notification) fields() []zap.Field {
	fields := []zap.Field{
		zap.String("event", kinds[n.key.kind].event),
		zap.String("status", n.status()),
		zap.String("severity", n.severity()),
		zap.String("alert_fingerprint", n.fingerprint()),
	}
	if len(n.alerts) == 1 {
		fields = append(fields, n.alerts[0].fields()...)
	} else if queues := n.queues(); queues > 0 {
		fields = append(fields, zap.Int("queues", queues))
	}
	if n.total.Count == 0 {
		return fields
	}
	fields = append(fields, zap.Int64("count", n.total.Count))
	if n.total.FirstDeadlineAt != 0 {
		fields = append(fields, zap.Time("first_deadline", time.UnixMilli(n.total.FirstDeadlineAt)),
			zap.Duration("worst_lateness", lateness(n.total.WorstMillis)))
	}
	if n.total.LastDeadlineAt != 0 {
		fields = append(fields, zap.Time("last_deadline", time.UnixMilli(n.total.LastDeadlineAt)))
	}
	return fields
}

// fields identify an alert.
func (a *alert) fields() (fields []zap.Field) {
	if a.queue != "" {
		fields = append(fields, zap.String("vhost", a.vhost), zap.String("queue", a.queue))
	}
	if a.action != "" {
		fields = append(fields, zap.String("action", a.action))
	}
	return fields
}
