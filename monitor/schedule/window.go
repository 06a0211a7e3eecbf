package schedule

import (
	"time"

	"curfew/broker/deadline"
)

// maxWindow bounds the shadows that wait in the window, 24 B each. A full window lets the
// oldest go early.
const maxWindow = 1 << 17

// window is where shadows wait for their message to be settled. They leave in the order in which they came. Each
// waits for span, or for up to markSpan less if it came shortly after another.
type window struct {
	span    time.Duration
	shadows []deadline.Ref // from head on
	head    int
	marks   []mark // from first on
	first   int
}

// mark is the instant until which n consecutive shadows wait.
type mark struct {
	untilAt deadline.Instant
	n       int
}

// markSpan is how much later a shadow may arrive and still share the mark of the one before
// it. They are let go together, so there are few marks.
const markSpan = 5 * time.Millisecond

func (w *window) len() int { return len(w.shadows) - w.head }

// takes reports whether a message with this deadline can wait: after the window, as much
// time as the window takes must remain.
func (w *window) takes(deadlineAt, nowAt deadline.Instant) bool {
	return w.span > 0 && deadlineAt.Sub(nowAt) > 2*w.span
}

func (w *window) push(s deadline.Ref, nowAt deadline.Instant) {
	if len(w.shadows) == cap(w.shadows) && w.head > 0 {
		w.shadows = append(w.shadows[:0], w.shadows[w.head:]...)
		w.head = 0
	}
	w.shadows = append(w.shadows, s)
	untilAt := nowAt.Add(w.span)
	if last := len(w.marks) - 1; last >= w.first && w.marks[last].untilAt.Add(markSpan) > untilAt {
		w.marks[last].n++
		return
	}
	if len(w.marks) == cap(w.marks) && w.first > 0 {
		w.marks = append(w.marks[:0], w.marks[w.first:]...)
		w.first = 0
	}
	w.marks = append(w.marks, mark{untilAt, 1})
}

// nextAt is until when the oldest waits; 0 when none waits.
func (w *window) nextAt() deadline.Instant {
	if w.len() == 0 {
		return 0
	}
	return w.marks[w.first].untilAt
}

// pop removes up to limit shadows that have waited, or for which there is no room.
// They are valid until the next push.
func (w *window) pop(nowAt deadline.Instant, limit int) []deadline.Ref {
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
