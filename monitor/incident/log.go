package incident

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

func (s *logSink) notify(a *notice) {
	s.sent.Inc()
	if a.over() {
		s.log.Info(a.text(), a.fields()...)
	} else {
		s.log.Warn(a.text(), a.fields()...)
	}
}

func (n *notice) fields() []zap.Field {
	fields := []zap.Field{
		zap.String("event", n.Condition), zap.String("status", n.status()), zap.String("severity", n.severity()), zap.String("incident", n.ID),
	}
	if len(n.Worst) > 0 {
		fields = append(fields, zap.String("vhost", n.Worst[0].VHost), zap.String("queue", n.Worst[0].Queue))
	}
	if n.worst.Action != "" {
		fields = append(fields, zap.String("action", n.worst.Action))
	}
	fields = append(fields, zap.Int64("count", n.Count), zap.Int64("toll", n.Toll))
	if n.worst.FirstAt != 0 {
		fields = append(fields, zap.Time("first_deadline", time.UnixMilli(n.worst.FirstAt)))
	}
	if n.late > 0 {
		fields = append(fields, zap.Duration("worst_lateness", n.late))
	}
	return fields
}
