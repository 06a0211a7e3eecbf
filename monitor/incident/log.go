package incident

import (
	"time"

	"go.uber.org/zap"
)

// write logs one line for a notification, at once.
func (d *delivery) write(a *notice) {
	d.metrics.notifications.WithLabelValues(logName, "sent").Inc()
	fields := []zap.Field{
		zap.String("event", a.Condition), zap.String("status", a.status()), zap.String("severity", a.severity()), zap.String("incident", a.ID),
	}
	if len(a.Worst) > 0 {
		fields = append(fields, zap.String("vhost", a.Worst[0].VHost), zap.String("queue", a.Worst[0].Queue))
	}
	if a.worst.Action != "" {
		fields = append(fields, zap.String("action", a.worst.Action))
	}
	fields = append(fields, zap.Int64("count", a.Count), zap.Int64("toll", a.Toll))
	if a.worst.FirstAt != 0 {
		fields = append(fields, zap.Time("first_deadline", time.UnixMilli(a.worst.FirstAt)))
	}
	if a.late > 0 {
		fields = append(fields, zap.Duration("worst_lateness", a.late))
	}
	if a.Ended != nil {
		d.log.Info(a.text(), fields...)
	} else {
		d.log.Warn(a.text(), fields...)
	}
}
