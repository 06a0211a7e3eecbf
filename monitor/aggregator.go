package monitor

import (
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/alert"
)

// aggregator adds up expired messages, so that counters and alerts are updated once per
// run of messages with the same queue, action, path and purpose. Not safe for concurrent use.
type aggregator struct {
	counters  *counters
	histogram *latenessHistogram
	alerts    *alert.Alerts

	lateness latenessCount
	queue    uint64
	of       *queueCounters // of queue
	action   deadline.Action
	path     deadline.Path
	intended bool             // they were in their queue to expire
	run      alert.Stats      // messages with this queue, action, path and intended
	late     alert.Stats      // those of run that were late
	began    deadline.Instant // when the first message of run expired
	offset   time.Duration    // of the primary's clock from the wall clock

	holding   uint64      // the queue of held and heldAgain
	held      alert.Stats // unacked past their deadline, seen for the first time
	heldAgain alert.Stats // seen before
}

func (m *Monitor) newAggregator() aggregator {
	return aggregator{
		counters:  m.counters,
		histogram: m.metrics.lateness,
		alerts:    m.options.Alerts,
	}
}

// expired counts messages that expired. It subscribes to Primary.Expiries. Safe for concurrent use.
func (m *Monitor) expired(batch []deadline.Expiry) {
	a := m.aggregators.Get().(*aggregator)
	for i := range batch {
		a.add(&batch[i])
	}
	a.close()
	m.aggregators.Put(a)
}

// add counts one message that expired. Its lateness does not count if Curfew did not cause it:
// if a consumer returned the message after its deadline, or a user expired it.
func (a *aggregator) add(x *deadline.Expiry) {
	if a.run.Count > 0 && (x.Ref.Queue != a.queue || x.Action != a.action || x.Path != a.path || x.Intended != a.intended) {
		a.flush()
	}
	if a.run.Count == 0 {
		a.open(x)
	}
	lateness := x.Lateness()
	a.count(&a.run, x.Ref.Deadline, lateness)
	if x.Path != deadline.Requeued && x.Path != deadline.Manual && x.Path != deadline.Scheduled {
		a.lateness.add(lateness)
		if lateness >= deadline.LateFrom {
			a.count(&a.late, x.Ref.Deadline, lateness)
		}
	}
}

// open begins a run with its first message.
func (a *aggregator) open(x *deadline.Expiry) {
	a.queue, a.action, a.path, a.intended, a.began = x.Ref.Queue, x.Action, x.Path, x.Intended, x.Arrived
	a.of = a.counters.of(a.queue, x.VHost, x.Queue)
}

// hold counts one message that a consumer holds past its deadline at the given instant. It is
// counted again every heldAfter. Alerts count each message once.
func (a *aggregator) hold(s deadline.Ref, at deadline.Instant) {
	if a.holding != s.Queue {
		a.flushHeld()
	}
	a.holding = s.Queue
	if late := at.Sub(s.Deadline); late < heldAfter {
		a.count(&a.held, s.Deadline, late)
	} else {
		a.count(&a.heldAgain, s.Deadline, late)
	}
}

// count adds a message to stats, which are in ms of the wall clock.
func (a *aggregator) count(t *alert.Stats, due deadline.Instant, lateness time.Duration) {
	if t.Count == 0 {
		a.offset = a.counters.offset()
	}
	t.Add(due.Add(-a.offset), lateness)
}

func (a *aggregator) flushHeld() {
	n := a.held.Count + a.heldAgain.Count
	if n == 0 {
		return
	}
	q := a.counters.of(a.holding, "", "")
	a.counters.held.add(q.labels, n)
	event := alert.Event{Kind: alert.HeldPastDeadline, VHost: q.vhost, Queue: q.queue, Stats: a.held}
	a.alerts.Record(event)
	event.Again, event.Stats = true, a.heldAgain
	a.alerts.Record(event)
	a.held, a.heldAgain = alert.Stats{}, alert.Stats{}
}

// close records what was added since the last call.
func (a *aggregator) close() {
	a.flushHeld()
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
	if a.path == deadline.Scheduled {
		a.alerts.Record(alert.Event{Kind: alert.DeadLetterUnroutable, VHost: q.vhost, Queue: q.queue, Action: a.action.String(), Stats: a.run})
		a.run = alert.Stats{}
		return
	}
	a.counters.countFired(q, a.action, a.path, a.run.Count)
	a.counters.recent.add(RecentExpiry{
		At: a.began.Add(-a.offset).UnixMilli(), VHost: q.vhost, Queue: q.queue, Action: a.action.String(), Path: a.path.String(),
		Count: a.run.Count, WorstMillis: a.run.WorstMillis, Late: a.late.Count > 0,
	})
	event := alert.Event{
		Kind:   alert.DeadlineMissed,
		VHost:  q.vhost,
		Queue:  q.queue,
		Action: a.action.String(),
		Stats:  a.run,
	}
	if a.path != deadline.Manual && !a.intended { // otherwise somebody wanted it
		a.alerts.Record(event)
	}
	if a.action == deadline.Parked {
		a.counters.countFailed(q, failParked, a.run.Count)
		event.Kind = alert.DeadLetterUnroutable
		a.alerts.Record(event)
	}
	if a.path == deadline.Stalled {
		a.counters.countFailed(q, failStalled, a.run.Count)
	}
	if a.late.Count > 0 {
		if a.path != deadline.Stalled {
			a.counters.countFailed(q, failLate, a.late.Count)
		}
		event.Kind, event.Stats = alert.DeadlineFiredLate, a.late
		a.alerts.Record(event)
	}
	a.run, a.late = alert.Stats{}, alert.Stats{}
}
