package broker

// dispatch offers ready messages to the consumers until none is left or none can
// take. Called with mu held.
func (q *Queue) dispatch(s *step) {
	for q.consumers.count > 0 && q.core.Ready() > 0 {
		if !q.offer(s) {
			return
		}
	}
}

// offer lets one consumer take, the highest priority and the longest unserved
// first: one message where several share a rank, all it can where it is alone.
func (q *Queue) offer(s *step) bool {
	if q.asked.singleActive {
		return !q.fading() && q.serve(s, q.active, q.core.Ready()) > 0
	}
	for i := range q.consumers.ranks {
		if q.offerRank(s, &q.consumers.ranks[i]) {
			return true
		}
	}
	return false
}

func (q *Queue) offerRank(s *step, r *rank) bool {
	most := 1
	if len(r.consumers) == 1 {
		most = q.core.Ready()
	}
	for i := range r.consumers {
		at := r.turn + i
		if at >= len(r.consumers) {
			at -= len(r.consumers)
		}
		if q.serve(s, r.consumers[at], most) > 0 {
			if r.turn = at + 1; r.turn == len(r.consumers) {
				r.turn = 0
			}
			return true
		}
	}
	return false
}

// serve has c take up to most messages.
func (q *Queue) serve(s *step, c *Consumer, most int) (taken int) {
	if c.waiting {
		return 0
	}
	s.source = Source{q: q, s: s, c: c, settle: c.NoAck, mode: modeOf(false, c.NoAck)}
	taken, more := c.Sink.Pull(c, &s.source, most)
	c.waiting = !more
	return taken
}

// choose keeps the active consumer of a queue with x-single-active-consumer: the
// first of the highest priority when there is none. On a classic queue it stays
// active until it is cancelled; on a quorum queue one of a higher priority takes
// over once the active one has settled what it holds, and until then nobody is
// served (RabbitMQ 4.0; 3.10 lets it wait on both). Called with mu held.
func (q *Queue) choose() {
	if !q.asked.singleActive || q.consumers.count == 0 || q.active != nil && (!q.fading() || q.active.unacked > 0) {
		return
	}
	if q.active != nil {
		q.active.become(Waiting)
	}
	q.active = q.consumers.first()
	q.active.become(SingleActive)
}

// fading: the active consumer is to be followed by one of a higher priority.
func (q *Queue) fading() bool {
	return q.asked.kind == Quorum && q.consumers.ranks[0].priority > q.active.Priority
}
