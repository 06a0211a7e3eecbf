package keeper

import "curfew/broker/deadline"

// renewal is when everything is given back, in the order of the queue, and taken again:
//
//   - messages have been held for half of the consumer_timeout, after which RabbitMQ would close their channel;
//   - a message of unknown age may have expired;
//   - there are too many channels, since most messages of each have expired.
//
// That is one release more, without anybody else in the way: no message changes its place, and there is nothing else to get right.
type renewal struct {
	probeAt deadline.Instant // when a message of unknown age may have expired; or never
	spent   bool             // no more probes: a message has been returned nearly as often as may be
	free    deadline.Instant // none begins before that
	began   deadline.Instant // of the present one, whose messages are being taken again; 0: none
}

// probe plans to find out at that time whether the message has expired.
func (r *renewal) probe(e entry, at deadline.Instant) {
	if at < e.deadline && at < r.probeAt && !r.spent {
		r.probeAt = at
	}
}

// at is when the next one begins.
func (r *renewal) at(l *line, f Facts, perChannel int) deadline.Instant {
	at := r.probeAt
	if limit, oldest := f.holdLimit(), l.oldest(); limit > 0 && oldest != never {
		at = min(at, oldest.Add(limit))
	}
	if n := len(l.stretches); n > manyChannels || n > sparseChannels && l.held.count < n*perChannel/4 && !(f.returnsCount() && f.takes() >= 0) {
		at = 0
	}
	return max(at, r.free)
}
