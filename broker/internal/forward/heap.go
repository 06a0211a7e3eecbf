package forward

import (
	"curfew/broker/chunked"
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
// allocate for each. It grows without being copied.
type dueHeap struct{ chunked.Slice[due] }

func (h *dueHeap) push(d due) {
	h.Push(d)
	h.rise(h.Len() - 1)
}

// pop takes the earliest; there must be one.
func (h *dueHeap) pop() due {
	first := *h.At(0)
	h.remove(0)
	return first
}

// remove takes out the one at an index. Others may be elsewhere afterwards.
func (h *dueHeap) remove(i int) {
	last := h.Pop()
	if i == h.Len() {
		return
	}
	*h.At(i) = last
	h.rise(i)
	h.sink(i)
}

func (h *dueHeap) rise(i int) {
	d := *h.At(i)
	for i > 0 && d.before(*h.At((i - 1) / 2)) {
		*h.At(i) = *h.At((i - 1) / 2)
		i = (i - 1) / 2
	}
	*h.At(i) = d
}

func (h *dueHeap) sink(i int) {
	d := *h.At(i)
	for {
		child := 2*i + 1
		if child >= h.Len() {
			break
		}
		if child+1 < h.Len() && h.At(child+1).before(*h.At(child)) {
			child++
		}
		if !h.At(child).before(d) {
			break
		}
		*h.At(i) = *h.At(child)
		i = child
	}
	*h.At(i) = d
}
