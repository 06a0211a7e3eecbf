package embedded

import (
	"curfew/broker"
	"curfew/monitor"
	"curfew/monitor/forecast"
	"curfew/scheduler"
)

var _ monitor.Surveyor = (*Primary)(nil)

// Survey implements monitor.Surveyor.
func (p *Primary) Survey(samples int, fn func(*monitor.QueueSurvey)) {
	now := p.broker.Now()
	var s monitor.QueueSurvey
	p.broker.Survey(samples, func(b *broker.Survey) {
		s.Queue, s.VHost, s.Name, s.Step, s.Standings = b.Queue, b.VHost, b.Name, b.Step, s.Standings[:0]
		s.Observed = forecast.Observation{Now: now, Delivered: b.Delivered, Polled: b.Polled, Ready: b.Ready, Consumers: b.Consumers}
		for _, x := range b.Standings {
			s.Standings = append(s.Standings, forecast.Standing{Seq: x.Ref.Seq, Ahead: x.Ahead, Deadline: x.Ref.Deadline})
		}
		fn(&s)
	})
}

// TimeToLive implements monitor.Surveyor.
func (p *Primary) TimeToLive(s scheduler.Shadow) (ttlMillis int64, ok bool) {
	return p.broker.TimeToLive(broker.MessageRef(s))
}
