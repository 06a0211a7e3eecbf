package delivery

import (
	"bytes"
	"cmp"
	"slices"

	"curfew/broker/policy"
	"curfew/broker/queue"
)

// consumers are the consumers of a queue in the order in which they are served: those of a
// higher priority first while they can take messages, those of equal priority in turn
// (RabbitMQ: Consumer Priorities).
type consumers struct {
	q      *Queue
	levels []priorityLevel // highest priority first; none is empty
	count  int
	active *Consumer // of a queue with x-single-active-consumer; nil only while it has no consumers
}

// priorityLevel is the consumers of one priority, in the order in which they came.
type priorityLevel struct {
	priority  int64
	consumers []*Consumer
	able      []byte // 1 for each of them that is not waiting: the next one is found without a look at the others
	turn      int    // index of the consumer that is offered the next message
}

func (l *consumers) addLocked(c *Consumer) {
	i, found := l.findLocked(c.Priority)
	if !found {
		l.levels = slices.Insert(l.levels, i, priorityLevel{priority: c.Priority})
	}
	r := &l.levels[i]
	if n := len(r.consumers); n > 0 {
		c.number = r.consumers[n-1].number + 1
	}
	c.waiting = true
	r.consumers, r.able = append(r.consumers, c), append(r.able, 0)
	l.count++
}

// removeLocked returns false if c is not one of them.
func (l *consumers) removeLocked(c *Consumer) bool {
	i, _ := l.findLocked(c.Priority)
	if i == len(l.levels) || !l.levels[i].remove(c) {
		return false
	}
	if len(l.levels[i].consumers) == 0 {
		l.levels = slices.Delete(l.levels, i, i+1)
	}
	l.count--
	if l.active == c {
		l.active = nil
	}
	return true
}

func (l *consumers) findLocked(priority int64) (at int, found bool) {
	return slices.BinarySearchFunc(l.levels, priority, func(r priorityLevel, p int64) int { return cmp.Compare(p, r.priority) })
}

// waitLocked notes whether c waits until it can take messages again. It may have been removed.
func (l *consumers) waitLocked(c *Consumer, waiting bool) {
	if c.waiting == waiting {
		return
	}
	c.waiting = waiting
	if level, found := l.findLocked(c.Priority); found {
		if i, found := l.levels[level].find(c); found {
			l.levels[level].able[i] ^= 1
		}
	}
}

func (r *priorityLevel) find(c *Consumer) (at int, found bool) {
	at, found = slices.BinarySearchFunc(r.consumers, c.number, func(x *Consumer, number uint64) int { return cmp.Compare(x.number, number) })
	return at, found && r.consumers[at] == c // another may have the number of one that has left
}

func (r *priorityLevel) remove(c *Consumer) bool {
	i, found := r.find(c)
	if !found {
		return false
	}
	r.consumers = slices.Delete(r.consumers, i, i+1)
	r.able = slices.Delete(r.able, i, i+1)
	if r.turn > i {
		r.turn--
	}
	if r.turn == len(r.consumers) {
		r.turn = 0
	}
	return true
}

// firstLocked is the oldest consumer of the highest priority; nil if there is none.
func (l *consumers) firstLocked() *Consumer {
	if l.count == 0 {
		return nil
	}
	return l.levels[0].consumers[0]
}

// exclusiveLocked reports whether the queue has an exclusive consumer, which is then its only one.
func (l *consumers) exclusiveLocked() bool { return l.count == 1 && l.firstLocked().Exclusive }

// allLocked returns every consumer, by priority and then by arrival.
func (l *consumers) allLocked() []*Consumer {
	all := make([]*Consumer, 0, l.count)
	for i := range l.levels {
		all = append(all, l.levels[i].consumers...)
	}
	return all
}

// lookCost is how many consumers that do not take a message are asked in the time that it takes to
// deliver one.
const lookCost = 16

// dispatchLocked offers ready messages to the consumers until no message is left or no consumer
// can take one, or until that has taken long enough for one lock: then more is true.
func (l *consumers) dispatchLocked(s *Transition) (more bool) {
	s.passed = 0
	for left := queue.AtOnce; l.count > 0 && l.q.core.Ready.Count > 0; {
		if left <= 0 || left <= s.passed/lookCost && len(s.instant) == 0 { // a message with TTL 0 is offered now or never
			return true
		}
		taken := l.offerLocked(s, min(left, l.q.core.Ready.Count))
		if taken == 0 {
			return s.fx.Full() // only because very many expired in front
		}
		left -= taken
		s.touched += taken
	}
	return false
}

// offerLocked lets one consumer take messages, the highest priority and the longest unserved
// first: one message if several share a priority, as many as it can, up to most, if it is alone. It
// returns how many were taken; 0: no consumer took any.
func (l *consumers) offerLocked(s *Transition, most int) (taken int) {
	if l.q.Arguments.SingleActive {
		if l.activeOutrankedLocked() {
			return 0
		}
		return l.serveLocked(s, l.active, most)
	}
	for i := range l.levels {
		if taken = l.offerLevelLocked(s, &l.levels[i], most); taken > 0 {
			return taken
		}
	}
	return 0
}

func (l *consumers) offerLevelLocked(s *Transition, r *priorityLevel, most int) (taken int) {
	if len(r.consumers) > 1 {
		most = 1
	}
	for _, part := range [2][2]int{{r.turn, len(r.consumers)}, {0, r.turn}} {
		for at := part[0]; ; at++ {
			next := bytes.IndexByte(r.able[at:part[1]], 1)
			if next < 0 {
				break
			}
			at += next
			if taken = l.serveLocked(s, r.consumers[at], most); taken > 0 {
				r.turn = (at + 1) % len(r.consumers)
				return taken
			}
			s.passed++
		}
	}
	return 0
}

// serveLocked lets c take up to most messages.
func (l *consumers) serveLocked(s *Transition, c *Consumer, most int) (taken int) {
	if c.waiting {
		return 0
	}
	s.source = Source{q: l.q, s: s, c: c, settle: c.NoAck}
	taken, more := c.Sink.Pull(c, &s.source, most)
	l.waitLocked(c, !more)
	return taken
}

// chooseActiveLocked chooses the active consumer of a queue with x-single-active-consumer: the
// first of the highest priority if there is none. On a classic queue it stays active until it is
// cancelled. On a quorum queue, one of a higher priority takes over once the active one has
// settled what it holds, and until then nobody is served (RabbitMQ 4.0; in 3.10 it has to wait
// on both types).
func (l *consumers) chooseActiveLocked() {
	if !l.q.Arguments.SingleActive || l.count == 0 || l.active != nil && (!l.activeOutrankedLocked() || l.active.unacked > 0) {
		return
	}
	if l.active != nil {
		l.active.setStatus(Waiting)
	}
	l.active = l.firstLocked()
	l.active.setStatus(SingleActive)
}

// activeOutrankedLocked reports whether a consumer of a higher priority is to replace the active
// one.
func (l *consumers) activeOutrankedLocked() bool {
	return l.q.Arguments.Type == policy.Quorum && l.levels[0].priority > l.active.Priority
}
