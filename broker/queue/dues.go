package queue

import (
	"curfew/broker/chunked"
	"curfew/broker/deadline"
)

// Due is the instant that a message waits for.
type Due struct {
	At  deadline.Instant
	Seq Seq
}

func (d Due) before(o Due) bool { return d.At < o.At || d.At == o.At && d.Seq < o.Seq }

// Dues has the earliest at its front, among equals the lowest Seq. It takes 16 bytes a
// message and has no pointers, so that millions cost the collector nothing; container/heap would
// allocate for each. It grows without being copied. An entry whose message no longer waits for it is
// stale: it stays until it is at the front, or until there are many. The zero value is empty. Not safe
// for concurrent use.
type Dues struct {
	Stale   int // entries
	heap    chunked.Slice[Due]
	checked int // index that Drop has come to
}

// Len is the number of entries, Stale among them.
func (h *Dues) Len() int { return h.heap.Len() }

// First is the earliest; there must be one.
func (h *Dues) First() Due { return *h.heap.At(0) }

// Push adds an entry.
func (h *Dues) Push(d Due) {
	h.heap.Push(d)
	h.rise(h.Len() - 1)
}

// Pop takes the earliest; there must be one. The caller counts it in Stale no longer if it is.
func (h *Dues) Pop() Due {
	first := h.First()
	h.remove(0)
	return first
}

const (
	// StaleKept is how many stale entries there may be even if they are more than half of all.
	StaleKept = 1024
	// checkedAtOnce is how many entries are checked for each that becomes stale while there are more.
	// Half of them are dropped on average.
	checkedAtOnce = 8
)

// Drop counts one more stale entry. While there are many it drops some; waits reports whether an entry's
// message still waits for it.
func (h *Dues) Drop(waits func(Due) bool) {
	h.Stale++
	for n := 0; n < checkedAtOnce && h.Stale > max(StaleKept, h.Len()/2); n++ {
		if h.checked == 0 {
			h.checked = h.Len()
		}
		h.checked = min(h.checked, h.Len()) - 1
		if !waits(*h.heap.At(h.checked)) {
			h.remove(h.checked)
			h.Stale--
		}
	}
}

// remove takes out the one at an index. Others may be elsewhere afterwards.
func (h *Dues) remove(i int) {
	last := h.heap.Pop()
	if i == h.Len() {
		return
	}
	*h.heap.At(i) = last
	h.rise(i)
	h.sink(i)
}

func (h *Dues) rise(i int) {
	d := *h.heap.At(i)
	for i > 0 && d.before(*h.heap.At((i - 1) / 2)) {
		*h.heap.At(i) = *h.heap.At((i - 1) / 2)
		i = (i - 1) / 2
	}
	*h.heap.At(i) = d
}

func (h *Dues) sink(i int) {
	d := *h.heap.At(i)
	for {
		child := 2*i + 1
		if child >= h.Len() {
			break
		}
		if child+1 < h.Len() && h.heap.At(child+1).before(*h.heap.At(child)) {
			child++
		}
		if !h.heap.At(child).before(d) {
			break
		}
		*h.heap.At(i) = *h.heap.At(child)
		i = child
	}
	*h.heap.At(i) = d
}
