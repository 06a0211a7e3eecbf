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

func (s *logSink) notify(a *alert) {
	s.sent.Inc()
	if a.resolved() {
		s.log.Info(a.summary(), a.fields()...)
	} else {
		s.log.Warn(a.summary(), a.fields()...)
	}
}

func (a *alert) fields() []zap.Field {
	fields := []zap.Field{
		zap.String("event", kinds[a.kind].event), zap.String("status", a.status()), zap.String("severity", a.severity()),
		zap.String("alert_fingerprint", a.fingerprint()),
	}
	if a.queue != "" {
		fields = append(fields, zap.String("vhost", a.vhost), zap.String("queue", a.queue))
	}
	if a.action != "" {
		fields = append(fields, zap.String("action", a.action))
	}
	if a.Count == 0 {
		return fields
	}
	fields = append(fields, zap.Int64("count", a.Count))
	if a.FirstDeadlineAt != 0 {
		fields = append(fields, zap.Time("first_deadline", time.UnixMilli(a.FirstDeadlineAt)), zap.Duration("worst_lateness", lateness(a.WorstMillis)))
	}
	if a.LastDeadlineAt != 0 {
		fields = append(fields, zap.Time("last_deadline", time.UnixMilli(a.LastDeadlineAt)))
	}
	return fields
}
