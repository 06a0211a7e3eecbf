package store

import (
	"cmp"
	"slices"
)

// index gathers, without pointers, what the records say of each queue. Records
// may say it in any order: entries minus settlements is what survives.
type index struct {
	queues map[uint64]*queueIndex
	last   *queueIndex // the one used last
}

type queueIndex struct {
	queue   uint64
	entries []RecoveredEntry
	runs    []settledRun
}

type settledRun struct {
	first, last uint64
	asOf        Pos
}

func (x *index) queue(id uint64) *queueIndex {
	if x.last != nil && x.last.queue == id {
		return x.last
	}
	q := x.queues[id]
	if q == nil {
		q = &queueIndex{queue: id}
		x.queues[id] = q
	}
	x.last = q
	return q
}

// add takes in a record of segment s.
func (x *index) add(s *scanned, k kind, rec []byte) {
	switch k {
	case kindEnqueue, kindHold, kindSettle, kindMove:
	default:
		return
	}
	f := factsOf(k, rec[recordHeader:])
	f.eachEntry(func(e Enqueue) {
		if n := e.Pos.segment(); n != s.number {
			s.enters.add(n)
		}
		if e.Durable {
			q := x.queue(e.Queue)
			q.entries = append(q.entries, RecoveredEntry{Seq: e.Seq, Pos: e.Pos, ExpiresAt: e.ExpiresAt, Flags: e.Flags})
		}
	})
	f.eachRun(func(r run) {
		if n := uint64(r.segment); n != s.number {
			s.settles.add(n)
		}
		q := x.queue(r.queue)
		q.runs = append(q.runs, settledRun{r.first, r.first + uint64(r.count) - 1, f.asOf})
	})
}

// surviving returns the queues that have entries left, exists telling whether a
// position is still there.
func (x *index) surviving(exists func(Pos) bool) []RecoveredQueue {
	var queues []RecoveredQueue
	for id, q := range x.queues {
		if entries := q.surviving(exists); len(entries) > 0 {
			queues = append(queues, RecoveredQueue{Queue: id, Entries: entries})
		}
	}
	slices.SortFunc(queues, func(a, b RecoveredQueue) int { return cmp.Compare(a.Queue, b.Queue) })
	return queues
}

// surviving filters the entries in place. Of several for one sequence number the
// one with the highest position counts: compaction has moved the message there.
// A settlement ends those that stood before it: a number may be given again after
// a crash has undone its first use.
func (q *queueIndex) surviving(exists func(Pos) bool) []RecoveredEntry {
	byPlace := func(a, b RecoveredEntry) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Pos, b.Pos))
	}
	if !slices.IsSortedFunc(q.entries, byPlace) {
		slices.SortFunc(q.entries, byPlace)
	}
	byFirst := func(a, b settledRun) int { return cmp.Compare(a.first, b.first) }
	if !slices.IsSortedFunc(q.runs, byFirst) {
		slices.SortFunc(q.runs, byFirst)
	}
	kept := q.entries[:0]
	var open []settledRun // those that may cover the entry at hand
	runs := q.runs
	for _, e := range q.entries {
		for len(runs) > 0 && runs[0].first <= e.Seq {
			open, runs = append(open, runs[0]), runs[1:]
		}
		open = slices.DeleteFunc(open, func(r settledRun) bool { return r.last < e.Seq })
		settled := slices.ContainsFunc(open, func(r settledRun) bool { return r.asOf > e.Pos })
		if settled || !exists(e.Pos) {
			continue
		}
		if n := len(kept); n > 0 && kept[n-1].Seq == e.Seq {
			kept[n-1] = e
			continue
		}
		kept = append(kept, e)
	}
	return slices.Clip(kept)
}
