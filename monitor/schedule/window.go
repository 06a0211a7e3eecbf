package schedule

import (
	"slices"
	"time"

	"curfew/broker/deadline"
)

// maxWindow bounds the shadows that wait in the window, 24 B each. A full window lets the
// oldest go early.
const maxWindow = 1 << 17

// window is where shadows wait for their message to be settled. They leave in the order in which they came, a batch at a
// time. Each waits for span, or for up to batchSpan less if it came shortly after the first of its batch.
type window struct {
	span    time.Duration
	batches []windowBatch    // none is empty
	length  int              // shadows
	spares  [][]deadline.Ref // memory of batches that were let go, at most maxSpares
}

// windowBatch is up to feedBatch shadows and the instant until which they wait.
type windowBatch struct {
	untilAt deadline.Instant
	shadows []deadline.Ref
}

// batchSpan is how much later a shadow may arrive and still wait no longer than the first of its batch.
const batchSpan = 5 * time.Millisecond

// takes reports whether a message with this deadline can wait: after the window, as much
// time as the window takes must remain.
func (w *window) takes(deadlineAt, nowAt deadline.Instant) bool {
	return w.span > 0 && deadlineAt.Sub(nowAt) > 2*w.span
}

func (w *window) push(s deadline.Ref, nowAt deadline.Instant) {
	untilAt, last := nowAt.Add(w.span), len(w.batches)-1
	if last < 0 || w.batches[last].untilAt.Add(batchSpan) <= untilAt || len(w.batches[last].shadows) == feedBatch {
		b := windowBatch{untilAt: untilAt}
		if n := len(w.spares); n > 0 {
			b.shadows, w.spares = w.spares[n-1][:0], w.spares[:n-1]
		}
		w.batches = append(w.batches, b)
		last++
	}
	w.batches[last].shadows = append(w.batches[last].shadows, s)
	w.length++
}

// nextAt is until when the oldest waits; 0 when none waits.
func (w *window) nextAt() deadline.Instant {
	if len(w.batches) == 0 {
		return 0
	}
	return w.batches[0].untilAt
}

// pop removes the oldest batch if it has waited, or if there is no room for it.
func (w *window) pop(nowAt deadline.Instant) []deadline.Ref {
	if len(w.batches) == 0 || w.batches[0].untilAt > nowAt && w.length <= maxWindow {
		return nil
	}
	oldest := w.batches[0].shadows
	w.batches = slices.Delete(w.batches, 0, 1) // there are few
	w.length -= len(oldest)
	return oldest
}

// maxSpares is how many batches the window keeps the memory of: those of one batchSpan at the pace of a busy broker.
const maxSpares = 16

// reuse takes back the memory of a batch that pop returned and nobody holds any more.
func (w *window) reuse(shadows []deadline.Ref) {
	if len(w.spares) < maxSpares {
		w.spares = append(w.spares, shadows)
	}
}
