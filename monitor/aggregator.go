package monitor

import (
	"curfew/broker/deadline"
	"curfew/monitor/incident"
	"time"
)

// aggregator adds up expired messages, so that counters are updated once per
// run of messages with the same queue, action, path and purpose. Not safe for concurrent use.
type aggregator struct {
	counters  *counters
	histogram *latenessHistogram
	record    func(incident.Event)

	lateness latenessCount
	first    *deadline.Expiry // of run
	run      incident.Stats   // messages with this queue, action, path and purpose
	late     incident.Stats   // those of run that were late
}

// expired counts messages that expired. It subscribes to Source.Expiries. Safe for concurrent use.
func (m *Monitor) expired(batch []deadline.Expiry) {
	a := m.aggregators.Get().(*aggregator)
	for i := range batch {
		a.add(&batch[i])
	}
	a.close()
	m.aggregators.Put(a)
}

// add counts one message that expired.
func (a *aggregator) add(x *deadline.Expiry) {
	if x.Path == deadline.Scheduled { // this is not an expiry
		return
	}
	if f := a.first; a.run.Count > 0 && (x.Ref.Queue != f.Ref.Queue || x.Action != f.Action || x.Path != f.Path || x.Intended != f.Intended) {
		a.flush()
	}
	if a.run.Count == 0 {
		a.first = x
	}
	lateness := x.Lateness()
	due, _ := x.Wall()
	a.run.Add(due, lateness)
	if x.Counts() {
		a.lateness.add(lateness)
	}
	if x.Late() || x.Observed && lateness > deadline.LateAfter {
		a.late.Add(due, lateness)
	}
}

// close records what was added since the last call.
func (a *aggregator) close() {
	if a.run.Count == 0 {
		return
	}
	a.flush()
	a.histogram.lastHour.add(time.Now(), &a.lateness)
	a.lateness, a.first = latenessCount{}, nil
}

// flush records a run.
func (a *aggregator) flush() {
	x, action := a.first, a.first.Action.String()
	_, began := x.Wall()
	vhost, queue := a.counters.add(x.Ref.Queue, x.VHost, x.Queue, a.run.Count)
	a.counters.fired.WithLabelValues(vhost, queue, action, x.Path.String()).Add(float64(a.run.Count))
	a.counters.recent.add(RecentExpiry{
		At: began.UnixMilli(), VHost: x.VHost, Queue: x.Queue, Action: action, Path: x.Path.String(),
		Count: a.run.Count, WorstMillis: a.run.WorstMillis, Late: a.late.Count > 0 && !x.Observed,
	})
	if x.Path == deadline.Requeued {
		a.counters.held.Add(uint64(a.run.Count))
	}
	event := incident.Event{
		Kind:   incident.Expired,
		VHost:  x.VHost,
		Queue:  x.Queue,
		Action: action,
		Stats:  a.run,
	}
	if x.Path != deadline.Manual && !x.Intended { // otherwise somebody wanted it
		a.record(event)
	}
	if x.Action == deadline.Parked {
		a.counters.failed.WithLabelValues(vhost, queue, failParked).Add(float64(a.run.Count))
	}
	if a.late.Count > 0 {
		reason := failLate
		switch {
		case x.Observed:
			reason = failRabbitMQ
		case x.Path == deadline.Stalled:
			reason = failStalled
		}
		a.counters.failed.WithLabelValues(vhost, queue, reason).Add(float64(a.late.Count))
		if event.Kind, event.Stats = incident.ExpiredLate, a.late; !x.Observed {
			a.record(event)
		}
	}
	a.run, a.late = incident.Stats{}, incident.Stats{}
}
