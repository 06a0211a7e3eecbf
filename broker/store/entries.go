package store

import (
	"encoding/binary"
	"slices"
)

// perRecord bounds the entries and runs of one record, except in transactions.
const perRecord = 1024

// maxTransaction is how many entries and settlements Transacted puts into one record.
// Settlements with consecutive sequence numbers and messages in one segment count as one.
const maxTransaction = 1 << 18

// enqueuedLocked appends those of the entries that belong in the journal.
func (j *journal) enqueuedLocked(entries []Enqueue) {
	j.enterLocked(entries, kindEnqueue)
	j.holdLocked(entries)
}

// holdLocked appends those of the entries that only compaction reads. They have no part of the
// reserve: a segment whose entries are not on record is not compacted.
func (j *journal) holdLocked(entries []Enqueue) {
	if j.spare.unclaimedLocked() >= j.opts.reserve {
		j.enterLocked(entries, kindHold)
	}
}

// enterLocked appends the entries that belong in records of kind k.
func (j *journal) enterLocked(entries []Enqueue, k kind) {
	for len(entries) > 0 {
		chunk := entries[:min(len(entries), perRecord)]
		entries = entries[len(chunk):]
		_, size := sizeOf(chunk, k)
		if size == 0 {
			continue
		}
		if b, _ := j.reserveLocked(k, size, 0); b != nil {
			putEntries(b[recordHeader:], chunk, k, &j.active.enters, j.active.number)
		}
	}
}

// sizeOf returns how many entries belong in records of kind k, and their size there.
func sizeOf(entries []Enqueue, k kind) (n, size int) {
	for i := range entries {
		if entries[i].kind() == k {
			n++
			size += entries[i].size()
		}
	}
	return n, size
}

// putEntries writes those of the entries that belong in records of kind k, and adds to enters the
// segments of their messages, except own (0: no segment).
func putEntries(b []byte, entries []Enqueue, k kind, enters *numberSet, own uint64) {
	for i := range entries {
		e := &entries[i]
		if e.kind() != k {
			continue
		}
		putEntry(b, e)
		if e.EnqueuedAt != 0 {
			putSince(b[entryBytes:], e.EnqueuedAt)
		}
		b = b[e.size():]
		if n := e.Pos.segment(); n != own {
			enters.Add(n)
		}
	}
}

// kind is the kind of record that journals the entry, 0 if it is not journaled.
func (e *Enqueue) kind() kind {
	switch {
	case !e.Pos.Durable():
		return 0
	case e.Durable:
		return kindEnqueue
	}
	return kindHold
}

// journaled reports whether the settlement must survive a restart.
func (s Settle) journaled() bool { return s.Durable && s.Pos.Durable() }

// journaled reports whether the amendment must survive a restart.
func (a Amend) journaled() bool { return a.Durable && a.Pos.Durable() }

// settledLocked appends those of the settlements that belong in the journal.
func (j *journal) settledLocked(settles []Settle) {
	j.runs = appendRuns(j.runs[:0], settles)
	for runs := range slices.Chunk(j.runs, perRecord) {
		j.putRunsLocked(runs, 0)
	}
}

// appendRuns appends those of the settlements that belong in the journal, combined into runs.
func appendRuns(runs []run, settles []Settle) []run {
	for i := range settles {
		s := &settles[i]
		if !s.journaled() {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].extends(s) {
			runs[n-1].count++
			continue
		}
		runs = append(runs, runOf(s))
	}
	return runs
}

// putRunsLocked appends settlements that hold as of a position; 0 means that of the record.
func (j *journal) putRunsLocked(runs []run, asOf Pos) {
	b := j.reserveAsOfLocked(kindSettle, len(runs)*runBytes, asOf)
	if b == nil {
		return
	}
	for i := range runs {
		j.putRunLocked(b[i*runBytes:], &runs[i])
	}
}

func (j *journal) putRunLocked(b []byte, r *run) {
	putRun(b, r)
	j.alterLocked(uint64(r.segment))
}

// alterLocked notes that the active segment has a record about another segment's entries.
func (j *journal) alterLocked(segment uint64) {
	if segment != j.active.number {
		j.active.alters.Add(segment)
	}
}

// reserveAsOfLocked makes a record of size bytes that holds as of a position; 0 means its
// own. After a failure it returns nil.
func (j *journal) reserveAsOfLocked(k kind, size int, asOf Pos) []byte {
	b, p := j.reserveLocked(k, 8+size, 0)
	if b == nil {
		return nil
	}
	if asOf == 0 {
		asOf = p
	}
	binary.LittleEndian.PutUint64(b[recordHeader:], uint64(asOf))
	return b[recordHeader+8:]
}

// movedLocked appends one record: src is settled, and the durable entries of dst are in their queues. Where they are the
// entry that is settled, it is settled as of its new message.
func (j *journal) movedLocked(src *Settle, dst []Enqueue) {
	_, size := sizeOf(dst, kindEnqueue)
	asOf := Pos(0)
	if len(dst) == 1 && dst[0].Queue == src.Queue && dst[0].Seq == src.Seq {
		asOf = dst[0].Pos
	}
	b := j.reserveAsOfLocked(kindMove, runBytes+size, asOf)
	if b == nil {
		return
	}
	r := runOf(src)
	j.putRunLocked(b, &r)
	j.table.get(uint64(r.segment)).moved = j.fact
	putEntries(b[runBytes:], dst, kindEnqueue, &j.active.enters, j.active.number)
	j.holdLocked(dst)
}

// transact appends one record: the durable entries are in their queues, and the durable
// settlements have left theirs. If there are too many it appends several. What takes long is done
// before the lock is taken, or in steps.
func (j *journal) transact(entries []Enqueue, settles []Settle) {
	runs := appendRuns(nil, settles)
	n, size := sizeOf(entries, kindEnqueue)
	if n+len(runs) > maxTransaction {
		inSteps(j, entries, (*journal).enqueuedLocked)
		inSteps(j, settles, (*journal).settledLocked)
		return
	}
	if n+len(runs) > 0 {
		t := newTransaction(j, 8+len(runs)*runBytes+size)
		binary.LittleEndian.PutUint64(t.payload, uint64(len(runs)))
		for i := range runs {
			putRun(t.payload[8+i*runBytes:], &runs[i])
			t.alters.Add(uint64(runs[i].segment))
		}
		putEntries(t.payload[8+len(runs)*runBytes:], entries, kindEnqueue, &t.enters, 0)
		since := j.lock()
		t.putLocked(j)
		j.unlock(since)
		if t.mem != nil {
			unmap(t.mem)
		}
	}
	if n, _ := sizeOf(entries, kindHold); n > 0 {
		inSteps(j, entries, (*journal).holdLocked)
	}
}

// transaction is the record of a transaction, before it has a position. One that is too large for a
// common segment is written where it will be in a segment of its own: to copy it, and the first touch
// of so much memory, would take milliseconds.
type transaction struct {
	payload        []byte
	enters, alters numberSet // the segments that it refers to
	mem            []byte    // of the segment of its own that it is in; nil: none
	at             int       // of the record in mem
}

func newTransaction(j *journal, payload int) *transaction {
	j.mu.Lock()
	at, size := 0, j.segmentSizeLocked(align(recordHeader+8+payload))
	if size > j.memory.size {
		at = j.firstRecordLocked()
	}
	j.mu.Unlock()
	if size > j.memory.size {
		if mem, err := j.memory.get(size); err == nil {
			return &transaction{payload: mem[at+recordHeader+8:][:payload], mem: mem, at: at}
		}
	}
	return &transaction{payload: make([]byte, payload)}
}

func (t *transaction) putLocked(j *journal) {
	last := [8]byte(t.payload[len(t.payload)-8:]) // putHeader clears it
	if t.mem != nil && j.firstRecordLocked() == t.at && j.usableLocked() == nil {
		j.rollLocked(t.mem)
		t.mem = nil
	}
	b := j.reserveAsOfLocked(kindTransact, len(t.payload), 0)
	if b == nil {
		return
	}
	if &b[0] != &t.payload[0] {
		copy(b, t.payload)
	}
	copy(b[len(t.payload)-8:], last[:])
	for _, n := range t.enters {
		if uint64(n) != j.active.number {
			j.active.enters.Add(uint64(n))
		}
	}
	for _, n := range t.alters {
		j.alterLocked(uint64(n))
	}
}

// inSteps calls fn under the lock for perRecord elements at a time.
func inSteps[T any](j *journal, all []T, fn func(*journal, []T)) {
	for some := range slices.Chunk(all, perRecord) {
		since := j.lock()
		fn(j, some)
		j.unlock(since)
	}
}

// amendedLocked appends those of the amendments that belong in the journal.
func (j *journal) amendedLocked(changes []Amend) {
	j.amends = j.amends[:0]
	for i := range changes {
		if a := &changes[i]; a.journaled() {
			j.amends = append(j.amends, amendment{a.Queue, a.Seq, uint32(a.Pos.segment()), a.Terms})
		}
	}
	for some := range slices.Chunk(j.amends, perRecord) {
		j.putAmendsLocked(some, 0)
	}
}

// putAmendsLocked appends amendments that hold as of a position; 0 means that of the
// record.
func (j *journal) putAmendsLocked(amends []amendment, asOf Pos) {
	size := 0
	for i := range amends {
		size += amends[i].size()
	}
	b := j.reserveAsOfLocked(kindAmend, size, asOf)
	if b == nil {
		return
	}
	for i := range amends {
		a := &amends[i]
		putAmend(b, a)
		b = b[a.size():]
		j.alterLocked(uint64(a.segment))
	}
}
