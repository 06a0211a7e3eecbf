package queue

// Each calls fn with every queued message in the order of delivery (the highest
// priority first, then by number) until fn returns false. It begins at from, or
// where from would be if it is gone; 0 is the beginning. A walk in pages goes
// on with last.Next(). fn must not change the queue.
func (q *entries) Each(from Seq, fn func(Seq, Message, State) bool) {
	p, number := len(q.byPriority)-1, uint64(0)
	if from != 0 && int(from.Priority()) <= p {
		p, number = int(from.Priority()), from.number()
	}
	for ; p >= 0; p-- {
		if !q.byPriority[p].from(number, func(at place) bool {
			e := at.entry()
			return fn(makeSeq(uint8(p), at.number), e.message(), e.state)
		}) {
			return
		}
		number = 0
	}
}

// EachBack is Each from the other end, in the reverse order of delivery. It begins with the
// message in front of before, or in front of where before would be if it is gone; 0 is behind
// the tail. A walk in pages goes on with the last one seen.
func (q *entries) EachBack(before Seq, fn func(Seq, Message, State) bool) {
	p, number := 0, uint64(numberMask)
	if before != 0 {
		p, number = int(before.Priority()), max(before.number(), 1)-1
	}
	for ; p < len(q.byPriority); p++ {
		if !q.byPriority[p].back(number, func(at place) bool {
			e := at.entry()
			return fn(makeSeq(uint8(p), at.number), e.message(), e.state)
		}) {
			return
		}
		number = numberMask
	}
}

// Oldest is the first message of a priority that is still in the queue, ready or unacked; 0: there is none.
func (q *entries) Oldest(priority uint8) (oldest Seq) {
	if int(priority) < len(q.byPriority) {
		q.byPriority[priority].from(0, func(at place) bool {
			oldest = makeSeq(priority, at.number)
			return false
		})
	}
	return oldest
}
