package forward

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// due is when a delayed message will be enqueued.
type due struct {
	at  deadline.Instant
	seq queue.Seq
}

func (d due) before(o due) bool { return d.at < o.at || d.at == o.at && d.seq < o.seq }

// dueHeap has the earliest at its front, among equals the one published first. It takes 16 bytes a
// message and has no pointers, so that millions cost the collector nothing; container/heap would
// allocate for each.
type dueHeap []due

func (h *dueHeap) push(d due) {
	*h = append(*h, d)
	s := *h
	i := len(s) - 1
	for i > 0 && d.before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = d
}

// pop takes the earliest; there must be one.
func (h *dueHeap) pop() due {
	s := *h
	first, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = last
	}
	*h = s
	if len(s) == 0 && cap(s) > dueKeep {
		*h = nil
	}
	return first
}

// dueKeep is the largest capacity that an emptied heap keeps, in entries.
const dueKeep = 1 << 14
