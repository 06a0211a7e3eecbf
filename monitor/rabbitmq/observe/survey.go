package observe

import (
	"time"

	"curfew/broker/deadline"
)

// Survey calls fn for each tapped queue, with its counts and about samples of its ready messages. The number of the
// queue is that of its line; instants are by the wall clock. The argument of fn is valid during the call,
// and fn may change it.
func (o *Observer) Survey(samples int, fn func(*deadline.Survey)) {
	for _, w := range o.watched() {
		if s, ok := w.survey(o.o.VHost, samples); ok {
			fn(s)
		}
	}
}

// TimeToLive returns the time to live with which a message entered its queue, the lower of the queue's and its own;
// false: it no longer waits, or its deadline is not known. line and number are Queue and Seq of an expiry.
func (o *Observer) TimeToLive(line, number uint64) (deadline.Millis, bool) {
	for _, w := range o.watched() {
		if ttl, ok := w.timeToLive(line, number); ok {
			return ttl, true
		}
	}
	return 0, false
}

// Lag returns how far the observer is behind: how long ago the tap that is furthest behind was last read to its end, or,
// without a connection, how long ago the connection was lost. The taps are checked once a second.
func (o *Observer) Lag() (lag time.Duration) {
	o.mu.Lock()
	lost := o.lostAt
	o.mu.Unlock()
	if !lost.IsZero() {
		return time.Since(lost)
	}
	for _, w := range o.watched() {
		w.mu.Lock()
		if w.line != nil {
			lag = max(lag, time.Since(w.readAt)-restEvery)
		}
		w.mu.Unlock()
	}
	return lag
}

func (w *watched) survey(vhost string, samples int) (*deadline.Survey, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil || w.line.counted == 0 {
		return nil, false
	}
	l := w.line
	step := max(l.ready/max(samples, 1), 1)
	return &deadline.Survey{Queue: w.number, VHost: vhost, Name: w.name, At: deadline.At(time.Now()), Ready: l.ready, Consumers: l.consumers,
		Delivered: l.served(), Step: step, Samples: l.samples(step)}, true
}

// samples returns every step-th waiting message, in order. What has missed its deadline is no longer at risk: it counts as one without.
func (l *line) samples(step int) []deadline.Sample {
	all, head := make([]deadline.Sample, (l.ready+step-1)/step), int64(l.entered)-int64(l.ready)
	for i := range all {
		all[i].Ahead = i * step
	}
	for _, w := range l.due.Items {
		if ahead := int64(w.number) - head; ahead >= 0 && ahead%int64(step) == 0 {
			all[ahead/int64(step)].Ref = deadline.Ref{Deadline: w.deadline, Seq: w.number}
		}
	}
	return all
}

func (w *watched) timeToLive(line, number uint64) (deadline.Millis, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil || w.number != line {
		return 0, false
	}
	return w.line.TimeToLive(number)
}
