package delivery

import (
	"slices"
	"time"

	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// ages tells how long the oldest message has been in a queue, without a time for each message: the messages of a priority enter in the order of
// their numbers, so a few instants with the numbers that were next tell it about all. Between two marks there are at least 10 ms and, when
// there are many, up to 1/128 of the time that the marks span as the message enters. So an age is never too low, and too high by that at most. The journal has the times of
// the marks, so ages go on over a restart (fillTimes). It is made with the first message: many queues never have one.
type ages []ageMarks // by priority

// ageMarks are the marks of one priority.
type ageMarks struct {
	list   []ageMark
	gap    time.Duration    // between two marks; 0: ageGap
	lookAt deadline.Instant // the oldest message is not looked up before: in a deep queue it is far from what enters
}

// ageMark says that the messages from seq on entered at that instant or later.
type ageMark struct {
	seq queue.Seq
	at  deadline.Instant
}

const (
	ageGap  = 10 * time.Millisecond
	maxAges = 512 // marks of a priority, 16 bytes each
)

// note records that seq, the last of its priority, enters core now. It returns a, made if it was nil, and whether there is a mark of seq.
func (a *ages) note(core *queue.Queue, seq queue.Seq, at deadline.Instant) (_ *ages, marked bool) {
	if a == nil {
		a = new(ages)
	}
	p := int(seq.Priority())
	for len(*a) <= p {
		*a = append(*a, ageMarks{})
	}
	m := &(*a)[p]
	if n := len(m.list); n == maxAges || m.gap > ageGap && at >= m.lookAt {
		m.lookAt = at.Add(ageGap)
		if oldest := core.Oldest(seq.Priority()); n == maxAges || oldest > m.list[n/2].seq {
			m.thin(oldest)
		}
	}
	if n := len(m.list); n == 0 || at >= m.list[n-1].at.Add(max(m.gap, ageGap)) {
		m.list, marked = append(m.list, ageMark{seq, at}), true
	}
	return a, marked
}

// thin drops the marks of messages that have left and, if that does not make room, every second mark.
// The gap is then that of the time which the marks still span.
func (m *ageMarks) thin(oldest queue.Seq) {
	m.list = slices.Delete(m.list, 0, m.find(oldest))
	m.gap = m.list[len(m.list)-1].at.Sub(m.list[0].at) / (maxAges / 2)
	if len(m.list) > maxAges/2 {
		for i := range len(m.list) / 2 {
			m.list[i] = m.list[2*i]
		}
		m.list = m.list[:len(m.list)/2]
	}
}

// find is the index of the mark for a message, 0 if it is older than all.
func (m *ageMarks) find(seq queue.Seq) int {
	i, exact := slices.BinarySearchFunc(m.list, seq, func(have ageMark, seq queue.Seq) int {
		if have.seq < seq {
			return -1
		}
		return int(min(have.seq-seq, 1))
	})
	if !exact {
		i--
	}
	return max(i, 0)
}

// entered is when a message entered; 0: not known.
func (a *ages) entered(seq queue.Seq) (at deadline.Instant) {
	if p := int(seq.Priority()); a != nil && p < len(*a) && len((*a)[p].list) > 0 {
		at = (*a)[p].list[(*a)[p].find(seq)].at
	}
	return at
}

// oldest is when the oldest message of core entered, ready or unacked; 0: there is none.
func (a *ages) oldest(core *queue.Queue) (at deadline.Instant) {
	for p := 0; a != nil && p < len(*a); p++ {
		seq := core.Oldest(uint8(p))
		if entered := a.entered(seq); seq != 0 && entered != 0 && (at == 0 || entered < at) {
			at = entered
		}
	}
	return at
}
