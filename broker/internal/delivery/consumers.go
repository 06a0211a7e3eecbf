package delivery

import (
	"slices"

	"curfew/broker/internal/queueargs"
)

// consumers are the consumers of a queue in the order in which they are served: those of a
// higher priority first while they can take, those of one priority in turn
// (RabbitMQ: Consumer Priorities).
type consumers struct {
	q      *Queue
	ranks  []rank // highest priority first; none is empty
	count  int
	active *Consumer // of a queue with x-single-active-consumer; nil only while it has no consumers
}

// rank is the consumers of one priority, in the order in which they came.
type rank struct {
	priority  int64
	consumers []*Consumer
	turn      int // index of the consumer that is offered the next message
}

func (l *consumers) add(c *Consumer) {
	i, found := l.find(c.Priority)
	if !found {
		l.ranks = slices.Insert(l.ranks, i, rank{priority: c.Priority})
	}
	l.ranks[i].consumers = append(l.ranks[i].consumers, c)
	l.count++
}

// remove returns false if c is not there.
func (l *consumers) remove(c *Consumer) bool {
	i, _ := l.find(c.Priority)
	if i == len(l.ranks) || !l.ranks[i].remove(c) {
		return false
	}
	if len(l.ranks[i].consumers) == 0 {
		l.ranks = slices.Delete(l.ranks, i, i+1)
	}
	l.count--
	if l.active == c {
		l.active = nil
	}
	return true
}

func (l *consumers) find(priority int64) (at int, found bool) {
	return slices.BinarySearchFunc(l.ranks, priority, func(r rank, p int64) int {
		switch {
		case r.priority > p:
			return -1
		case r.priority < p:
			return 1
		}
		return 0
	})
}

func (r *rank) remove(c *Consumer) bool {
	i := slices.Index(r.consumers, c)
	if i < 0 {
		return false
	}
	r.consumers = slices.Delete(r.consumers, i, i+1)
	if r.turn > i {
		r.turn--
	}
	if r.turn == len(r.consumers) {
		r.turn = 0
	}
	return true
}

// first is the oldest consumer of the highest priority; nil if there is none.
func (l *consumers) first() *Consumer {
	if l.count == 0 {
		return nil
	}
	return l.ranks[0].consumers[0]
}

// exclusive reports whether the queue has an exclusive consumer, which is alone then.
func (l *consumers) exclusive() bool { return l.count == 1 && l.first().Exclusive }

// all is every consumer, in the order of priority and arrival.
func (l *consumers) all() []*Consumer {
	all := make([]*Consumer, 0, l.count)
	for i := range l.ranks {
		all = append(all, l.ranks[i].consumers...)
	}
	return all
}

// dispatchLocked offers ready messages to the consumers until none is left or none can take.
func (l *consumers) dispatchLocked(s *Transition) {
	for l.count > 0 && l.q.core.Ready() > 0 {
		if !l.offerLocked(s) {
			return
		}
	}
}

// offerLocked lets one consumer take, the highest priority and the longest unserved
// first: one message where several share a rank, all it can where it is alone.
func (l *consumers) offerLocked(s *Transition) bool {
	if l.q.Arguments.SingleActive {
		return !l.activeOutranked() && l.serveLocked(s, l.active, l.q.core.Ready()) > 0
	}
	for i := range l.ranks {
		if l.offerRankLocked(s, &l.ranks[i]) {
			return true
		}
	}
	return false
}

func (l *consumers) offerRankLocked(s *Transition, r *rank) bool {
	most := 1
	if len(r.consumers) == 1 {
		most = l.q.core.Ready()
	}
	for i := range r.consumers {
		at := r.turn + i
		if at >= len(r.consumers) {
			at -= len(r.consumers)
		}
		if l.serveLocked(s, r.consumers[at], most) > 0 {
			if r.turn = at + 1; r.turn == len(r.consumers) {
				r.turn = 0
			}
			return true
		}
	}
	return false
}

// serveLocked has c take up to most messages.
func (l *consumers) serveLocked(s *Transition, c *Consumer, most int) (taken int) {
	if c.waiting {
		return 0
	}
	s.source = Source{q: l.q, s: s, c: c, settle: c.NoAck, mode: modeOf(false, c.NoAck)}
	taken, more := c.Sink.Pull(c, &s.source, most)
	c.waiting = !more
	return taken
}

// chooseActiveLocked sees to the active consumer of a queue with x-single-active-consumer: the
// first of the highest priority when there is none. On a classic queue it stays
// active until it is cancelled. On a quorum queue one of a higher priority takes
// over once the active one has settled what it holds, and until then nobody is
// served (RabbitMQ 4.0; 3.10 lets it wait on both).
func (l *consumers) chooseActiveLocked() {
	if !l.q.Arguments.SingleActive || l.count == 0 || l.active != nil && (!l.activeOutranked() || l.active.unacked > 0) {
		return
	}
	if l.active != nil {
		l.active.setStatus(Waiting)
	}
	l.active = l.first()
	l.active.setStatus(SingleActive)
}

// activeOutranked reports whether a consumer of a higher priority is to follow the active one.
func (l *consumers) activeOutranked() bool {
	return l.q.Arguments.Type == queueargs.Quorum && l.ranks[0].priority > l.active.Priority
}
