package monitor

import "curfew/scheduler"

// maxWindow bounds the shadows that wait in the window, 24 B each. A full window
// lets its oldest go early.
const maxWindow = 1 << 17

// window is where shadows wait for their message to be settled: first in, first
// out, all for the same time, up to markSpan less.
type window struct {
	span    int64              // µs
	shadows []scheduler.Shadow // from head on
	head    int
	marks   []mark // from first on
	first   int
}

// mark says until when n shadows in a row wait.
type mark struct {
	untilAt int64 // Unix µs
	n       int
}

// markSpan is how much later, in µs, a shadow may come and still have the mark of the one
// before it: so they are let go together, and marks are few.
const markSpan = 5000

func (w *window) len() int { return len(w.shadows) - w.head }

// takes says whether a message with this deadline can wait: whether as much time
// as the window takes remains after it.
func (w *window) takes(deadlineAt, nowAt int64) bool {
	return w.span > 0 && deadlineAt-nowAt > 2*w.span
}

func (w *window) push(s scheduler.Shadow, nowAt int64) {
	if len(w.shadows) == cap(w.shadows) && w.head > 0 {
		w.shadows = append(w.shadows[:0], w.shadows[w.head:]...)
		w.head = 0
	}
	w.shadows = append(w.shadows, s)
	untilAt := nowAt + w.span
	if last := len(w.marks) - 1; last >= w.first && w.marks[last].untilAt+markSpan > untilAt {
		w.marks[last].n++
		return
	}
	if len(w.marks) == cap(w.marks) && w.first > 0 {
		w.marks = append(w.marks[:0], w.marks[w.first:]...)
		w.first = 0
	}
	w.marks = append(w.marks, mark{untilAt, 1})
}

// nextAt is until when the oldest waits, in Unix µs; 0 when none waits.
func (w *window) nextAt() int64 {
	if w.len() == 0 {
		return 0
	}
	return w.marks[w.first].untilAt
}

// pop removes up to limit shadows that have waited, or for which there is no room.
// They are valid until the next push.
func (w *window) pop(nowAt int64, limit int) []scheduler.Shadow {
	n := 0
	for n < limit && w.first < len(w.marks) {
		m := &w.marks[w.first]
		if m.untilAt > nowAt && w.len()-n <= maxWindow {
			break
		}
		take := min(m.n, limit-n)
		n += take
		if m.n -= take; m.n == 0 {
			w.first++
		}
	}
	out := w.shadows[w.head : w.head+n]
	if w.head += n; w.len() == 0 {
		w.empty()
	}
	return out
}

// empty starts the buffers over, and gives them back if a burst made them large.
func (w *window) empty() {
	const keep = 1 << 14
	w.shadows, w.head = w.shadows[:0], 0
	w.marks, w.first = w.marks[:0], 0
	if cap(w.shadows) > keep {
		w.shadows = nil
	}
}
