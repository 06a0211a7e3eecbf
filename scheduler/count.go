package scheduler

import "curfew/broker/deadline"

// First returns the earliest deadline of the shadows whose score is their deadline; 0 if there
// are none. It leaves out shadows that were claimed or put off.
func (x *Index) First() deadline.Instant {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := never
	for _, t := range x.tenants {
		t.line.upTo(&first, func(q *queue) { first = min(first, q.waiting.first()) })
	}
	if first == never {
		return 0
	}
	return first
}

// PendingBefore appends, for each of the instants, which are in order, how many shadows have their deadline at or before it. Those whose score is not
// their deadline are in every count: they were claimed, or are held. It takes a step for each page of the queues with such deadlines; it does not look at
// every shadow.
func (x *Index) PendingBefore(until []deadline.Instant, out []int64) []int64 {
	from := len(out)
	x.mu.Lock()
	defer x.mu.Unlock()
	for range until {
		out = append(out, int64(len(x.moves.places)))
	}
	if len(until) == 0 {
		return out
	}
	for _, t := range x.tenants {
		t.line.upTo(&until[len(until)-1], func(q *queue) { q.waiting.count(until, out[from:]) })
	}
	return out
}
