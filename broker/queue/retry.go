package queue

import (
	"unique"

	"curfew/broker/deadline"
)

// MaxSteps is the most steps of a Retry.
const MaxSteps = deadline.MaxSteps

// Retry says how long a message waits that came back, until it is ready again. The first time it is
// Steps[0], and so on; the last step counts for all further times. Without steps it is Min times the
// number of the time, at most Max (RabbitMQ 4.3: Quorum Queues, Delayed Retry). The zero value: not at
// all.
type Retry struct {
	Failed   bool  // messages wait on which a consumer failed
	Returned bool  // messages wait that a consumer gave back
	Jitter   uint8 // percent by which the wait may be longer, differently for each message and time
	Count    uint8 // of the steps
	Steps    [MaxSteps]deadline.Millis
	Min, Max deadline.Millis
}

// NoRetry is the zero value of Options.Retry: whatever comes back is ready at once.
var NoRetry unique.Handle[Retry]

// wait is how long the message s waits that has come back so many times. failed: this time a consumer
// failed on it.
func (r *Retry) wait(s Seq, times uint16, failed bool) deadline.Millis {
	if failed && !r.Failed || !failed && !r.Returned {
		return 0
	}
	wait := min(r.Min*deadline.Millis(times), r.Max)
	if r.Count > 0 {
		wait = r.Steps[min(times, uint16(r.Count))-1]
	}
	return wait.Jitter(r.Jitter, uint64(s)<<16+uint64(times))
}

// waits are the messages of a queue that wait until they are ready again.
type waits struct {
	until map[Seq]deadline.Instant // nil if none waits
	dues  Dues
	sum   Sum
}

// add has a message wait that is in no other count.
func (w *waits) add(s Seq, e *entry, until deadline.Instant) {
	if w.until == nil {
		w.until = map[Seq]deadline.Instant{}
	}
	e.state = Waiting
	w.until[s] = until
	w.sum.add(e, 1)
	w.dues.Push(Due{until, s})
}

// remove ends the wait of a message; the caller gives it another state. popped: its entry is not in dues
// any more.
func (w *waits) remove(s Seq, e *entry, popped bool) {
	delete(w.until, s)
	w.sum.add(e, -1)
	if len(w.until) == 0 {
		*w = waits{}
	} else if !popped {
		w.dues.Drop(func(d Due) bool { return w.until[d.Seq] == d.At })
	}
}

// Return is Requeue for a message that came back from a consumer; counted: the delivery counts as one that
// failed. If the queue's Retry says so the message is not ready, but waits until it is: Wake has to
// be called then. failed: the consumer failed on it, and did not merely give it back. stamp is the
// present instant, rounded up: the wait counts from it.
func (q *Queue) Return(now, stamp deadline.Instant, s Seq, counted, failed bool, fx *Effects) bool {
	if !q.Requeue(now, s, counted, fx) {
		return false
	}
	if at, ok := q.find(s); ok && q.opts.Retry != NoRetry {
		retry := q.opts.Retry.Value()
		if wait := retry.wait(s, max(at.entry().deliveries, 1), failed); wait > 0 {
			q.Wait(s, stamp.AddMillis(wait))
		}
	}
	return true
}

// Wait has the ready message s wait until an instant. It must be ready.
func (q *Queue) Wait(s Seq, until deadline.Instant) {
	at, _ := q.find(s)
	q.unready(s, at)
	if q.waits == nil {
		q.waits = &waits{}
	}
	q.waits.add(s, at.entry(), until)
}

// Wake makes those messages ready whose wait is over, at most most of them, and settles those as
// Expired whose deadline has come. next is when it has to be called again; 0: no message waits.
func (q *Queue) Wake(now deadline.Instant, most int, fx *Effects) (next deadline.Instant) {
	w := q.waits
	for n := 0; w != nil && w.until != nil; n++ {
		d := w.dues.First()
		if n == most || d.At > now {
			return d.At
		}
		w.dues.Pop()
		if w.until[d.Seq] != d.At {
			w.dues.Stale--
			continue
		}
		at, _ := q.find(d.Seq)
		q.endWait(now, d.Seq, at, true, fx)
	}
	return 0
}

// WakeNow ends the wait of the message s, if it has this deadline. False: it is gone, or does not wait.
func (q *Queue) WakeNow(now deadline.Instant, s Seq, deadline deadline.Instant, fx *Effects) bool {
	at, ok := q.find(s)
	if !ok || at.entry().state != Waiting || at.entry().expiresAt != deadline {
		return false
	}
	q.endWait(now, s, at, false, fx)
	return true
}

// endWait makes a waiting message ready, or settles it as Expired if its deadline has come.
func (q *Queue) endWait(now deadline.Instant, s Seq, at place, popped bool, fx *Effects) {
	e := at.entry()
	q.waits.remove(s, e, popped)
	q.byPriority[s.Priority()].setReady(at)
	q.countReady(s.Priority(), e)
	if e.due(now) {
		q.settle(s, at, Expired, fx)
	}
}

// WaitsUntil is when a message that waits is ready again; 0: it does not wait.
func (q *Queue) WaitsUntil(s Seq) deadline.Instant {
	if q.waits == nil {
		return 0
	}
	return q.waits.until[s]
}

// Waiting are the messages that wait until they are ready again.
func (q *Queue) Waiting() Sum {
	if q.waits == nil {
		return Sum{}
	}
	return q.waits.sum
}
