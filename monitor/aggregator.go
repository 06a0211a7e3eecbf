package monitor

import (
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/incident"
)

// aggregator adds up expired messages, so that counters are updated once per
// run of messages with the same queue, action, path and purpose. Not safe for concurrent use.
type aggregator struct {
	counters  *counters
	histogram *latenessHistogram
	record    func(incident.Event)
	ahead     func() time.Duration // of the source's clock from the wall clock

	lateness latenessCount
	queue    uint64
	of       *queueCounters // of queue
	action   deadline.Action
	path     deadline.Path
	intended bool             // they were in their queue to expire
	run      incident.Stats   // messages with this queue, action, path and intended
	late     incident.Stats   // those of run that were late
	began    deadline.Instant // when the first message of run expired
	offset   time.Duration    // what ahead said then
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
	if a.run.Count > 0 && (x.Ref.Queue != a.queue || x.Action != a.action || x.Path != a.path || x.Intended != a.intended) {
		a.flush()
	}
	if a.run.Count == 0 {
		a.open(x)
	}
	lateness, due := x.Lateness(), x.Ref.Deadline.Add(-a.offset) // by the wall clock
	a.run.Add(due, lateness)
	if x.Counts() {
		a.lateness.add(lateness)
		if x.Late() {
			a.late.Add(due, lateness)
		}
	}
}

// open begins a run with its first message.
func (a *aggregator) open(x *deadline.Expiry) {
	a.queue, a.action, a.path, a.intended, a.began = x.Ref.Queue, x.Action, x.Path, x.Intended, x.Arrived
	a.offset = a.ahead()
	a.of = a.counters.of(a.queue, x.VHost, x.Queue)
}

// close records what was added since the last call.
func (a *aggregator) close() {
	if a.run.Count == 0 {
		return
	}
	a.flush()
	a.histogram.merge(&a.lateness)
	a.lateness = latenessCount{}
}

// flush records a run.
func (a *aggregator) flush() {
	q := a.of
	a.counters.countFired(q, a.action, a.path, a.run.Count)
	a.counters.recent.add(RecentExpiry{
		At: a.began.Add(-a.offset).UnixMilli(), VHost: q.vhost, Queue: q.queue, Action: a.action.String(), Path: a.path.String(),
		Count: a.run.Count, WorstMillis: a.run.WorstMillis, Late: a.late.Count > 0,
	})
	event := incident.Event{
		Kind:   incident.Expired,
		VHost:  q.vhost,
		Queue:  q.queue,
		Action: a.action.String(),
		Stats:  a.run,
	}
	if a.path != deadline.Manual && !a.intended { // otherwise somebody wanted it
		a.record(event)
	}
	if a.action == deadline.Parked {
		a.counters.countFailed(q, failParked, a.run.Count)
	}
	if a.late.Count > 0 {
		reason := failLate
		if a.path == deadline.Stalled {
			reason = failStalled
		}
		a.counters.countFailed(q, reason, a.late.Count)
		event.Kind, event.Stats = incident.ExpiredLate, a.late
		a.record(event)
	}
	a.run, a.late = incident.Stats{}, incident.Stats{}
}
