package delivery

import (
	"cmp"
	"slices"

	"curfew/broker/queue"
	"curfew/broker/store"
)

// AppendDelivered appends runs of the queue's messages that a consumer has seen and not
// settled. A run ends before a message that no consumer has seen.
func (q *Queue) AppendDelivered(runs []store.Delivered) []store.Delivered {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := len(runs)
	var run *store.Delivered
	q.core.Each(0, func(seq queue.Seq, m queue.Message, state queue.State) bool {
		switch {
		case state != queue.Unacked && m.Flags&queue.Redelivered == 0:
			run = nil
		case run == nil || queue.Seq(run.First).Priority() != seq.Priority():
			runs = append(runs, store.Delivered{Queue: q.ID, First: uint64(seq), Count: 1})
			run = &runs[len(runs)-1]
		default:
			run.Count = uint64(seq) - run.First + 1
		}
		return true
	})
	if q.Retained.countLocked()+q.Letters.line.n == 0 {
		return runs
	}
	of := q.Retained.appendDeliveredLocked(q.ID, runs[from:])
	return append(runs[:from], withoutCovered(q.Letters.line.appendDelivered(q.ID, of))...)
}

// withoutCovered drops runs of one message that are within another run.
func withoutCovered(runs []store.Delivered) []store.Delivered {
	slices.SortFunc(runs, func(a, b store.Delivered) int { return cmp.Compare(a.First, b.First) })
	kept := runs[:0]
	for _, r := range runs {
		if n := len(kept); n == 0 || r.First >= kept[n-1].First+kept[n-1].Count {
			kept = append(kept, r)
		}
	}
	return kept
}
