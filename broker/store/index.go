package store

import (
	"cmp"
	"slices"
)

// index gathers, without pointers, what the records say about each queue. Records may come
// in any order: entries minus settlements are what survives.
type index struct {
	queues map[uint64]*queueIndex
	last   *queueIndex // the one used most recently
}

type queueIndex struct {
	queue   uint64
	entries []RecoveredEntry
	runs    []settledRun
	amends  []amended
}

// amended holds the terms of an entry as of a position. The entry's message was in segment.
type amended struct {
	seq     uint64
	asOf    Pos
	segment uint32
	Terms
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

// add adds a record of segment s.
func (x *index) add(s *scanned, k kind, rec []byte) {
	f, states := factsOf(k, rec[recordHeader:])
	if !states {
		return
	}
	f.eachEntry(func(e Enqueue) {
		if n := e.Pos.segment(); n != s.number {
			s.enters.Add(n)
		}
		if e.Durable {
			q := x.queue(e.Queue)
			q.entries = append(q.entries, RecoveredEntry{e.Seq, e.Pos, e.EnqueuedAt, Terms{ExpiresAt: e.ExpiresAt, Flags: e.Flags}})
		}
	})
	f.eachRun(func(r run) {
		if n := uint64(r.segment); n != s.number {
			s.alters.Add(n)
		}
		q := x.queue(r.queue)
		q.runs = append(q.runs, settledRun{r.first, r.first + uint64(r.count) - 1, f.asOf})
	})
	f.eachAmend(func(a amendment) {
		if n := uint64(a.segment); n != s.number {
			s.alters.Add(n)
		}
		q := x.queue(a.queue)
		q.amends = append(q.amends, amended{a.seq, f.asOf, a.segment, a.Terms})
	})
}

// surviving returns the queues that have entries left. exists reports whether the message
// at a position still exists.
func (x *index) surviving(exists func(Pos) bool) []RecoveredQueue {
	var queues []RecoveredQueue
	for id, q := range x.queues {
		if entries := q.surviving(exists); len(entries) > 0 {
			q.amend(entries)
			queues = append(queues, RecoveredQueue{Queue: id, Entries: entries})
		}
	}
	slices.SortFunc(queues, func(a, b RecoveredQueue) int { return cmp.Compare(a.Queue, b.Queue) })
	return queues
}

// surviving filters the entries in place. If a sequence number has several entries, the one
// with the highest position counts: compaction has moved the message there. A settlement
// ends only entries before it: a number may be given again after a crash has undone its
// first use.
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
	var open []settledRun // those that may cover the present entry
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

// amend gives each entry the latest terms that name the segment of its message or a later
// one. Terms that name an earlier segment are in the entry that compaction wrote, or belong to
// an earlier message with the same number: see the package comment.
func (q *queueIndex) amend(entries []RecoveredEntry) {
	slices.SortFunc(q.amends, func(a, b amended) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.asOf, b.asOf))
	})
	amends := q.amends
	for i := range entries {
		e := &entries[i]
		for len(amends) > 0 && amends[0].seq < e.Seq {
			amends = amends[1:]
		}
		for ; len(amends) > 0 && amends[0].seq == e.Seq; amends = amends[1:] {
			if uint64(amends[0].segment) >= e.Pos.segment() {
				e.Terms = amends[0].Terms
			}
		}
	}
}
