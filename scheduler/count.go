package scheduler

import "curfew/broker/deadline"

// Count appends for each of the instants how many shadows have their
// deadline at or before it. Those whose score is not their deadline are in every count:
// they were claimed, or are held. For each instant it takes a step for each node of the
// tree and a search; it does not look at every shadow.
func (s *Index) Count(until []deadline.Instant, out []int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range until {
		out = append(out, int64(s.waiting.upTo(at)+s.moved.len()))
	}
	return out
}

// upTo counts the shadows whose deadline is <= until.
func (t *tree) upTo(until deadline.Instant) (n int) {
	if t.length == 0 {
		return 0
	}
	// The page of the greatest shadow with that deadline: all pages before it count whole.
	at := t.find(deadline.Ref{Deadline: until, Queue: ^uint64(0), Seq: ^uint64(0)}, place{})
	for _, before := range t.nodes[:at.node] {
		n += before.count
	}
	for _, before := range t.nodes[at.node].pages[:at.page] {
		n += before.len()
	}
	return n + t.nodes[at.node].pages[at.page].due(until)
}
