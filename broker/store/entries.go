package store

import "encoding/binary"

// perRecord bounds the entries and runs of one record, but for those of a transaction.
const perRecord = 1024

// MaxTransaction is how many entries and settlements, those with consecutive sequence
// numbers and messages in one segment counting as one, Transacted makes one record of.
const MaxTransaction = 1 << 18

// enqueued appends the journal's entries among those given. The caller holds mu.
func (j *journal) enqueued(entries []Enqueue) {
	j.enter(entries, kindEnqueue)
	j.enter(entries, kindHold)
}

// enter appends the entries that belong into records of kind k.
func (j *journal) enter(entries []Enqueue, k kind) {
	for len(entries) > 0 {
		chunk := entries[:min(len(entries), perRecord)]
		entries = entries[len(chunk):]
		_, size := sizeOf(chunk, k)
		if size == 0 {
			continue
		}
		if b, _ := j.reserve(k, size, 0); b != nil {
			j.putEntries(b[recordHeader:], chunk, k)
		}
	}
}

// sizeOf is how many entries belong into records of kind k, and what they take there.
func sizeOf(entries []Enqueue, k kind) (n, size int) {
	for i := range entries {
		if entries[i].kind() == k {
			n++
			size += entries[i].size()
		}
	}
	return n, size
}

func (j *journal) putEntries(b []byte, entries []Enqueue, k kind) {
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
		if n := e.Pos.segment(); n != j.active.number {
			j.active.enters.add(n)
		}
	}
}

// kind is that of the record an entry is journaled with, 0 if it is not.
func (e *Enqueue) kind() kind {
	switch {
	case !e.Pos.Durable():
		return 0
	case e.Durable:
		return kindEnqueue
	}
	return kindHold
}

// journaled reports whether a settlement must be found again after a restart.
func (s Settle) journaled() bool { return s.Durable && s.Pos.Durable() }

// journaled reports whether an amendment must be found again after a restart.
func (a Amend) journaled() bool { return a.Durable && a.Pos.Durable() }

// settled appends the journal's settlements among those given. The caller holds mu.
func (j *journal) settled(settles []Settle) {
	for runs := j.runsOf(settles); len(runs) > 0; {
		n := min(len(runs), perRecord)
		j.putRuns(runs[:n], 0)
		runs = runs[n:]
	}
}

// runsOf makes runs of the journal's settlements among those given, valid until the next
// call. The caller holds mu.
func (j *journal) runsOf(settles []Settle) []run {
	j.runs = j.runs[:0]
	for i := range settles {
		s := &settles[i]
		if !s.journaled() {
			continue
		}
		if n := len(j.runs); n > 0 && j.runs[n-1].extends(s) {
			j.runs[n-1].count++
			continue
		}
		j.runs = append(j.runs, runOf(s))
	}
	return j.runs
}

// putRuns appends settlements that hold as of a position; 0: the record's own.
func (j *journal) putRuns(runs []run, asOf Pos) {
	b := j.reserveAsOf(kindSettle, len(runs)*runBytes, asOf)
	if b == nil {
		return
	}
	for i := range runs {
		j.putRun(b[i*runBytes:], &runs[i])
	}
}

func (j *journal) putRun(b []byte, r *run) {
	putRun(b, r)
	j.alter(uint64(r.segment))
}

// alter notes that the active segment says something of another's entries.
func (j *journal) alter(segment uint64) {
	if segment != j.active.number {
		j.active.alters.add(segment)
	}
}

// reserveAsOf makes a record of size bytes that holds as of a position; 0: its own.
// After a failure it returns nil. The caller holds mu.
func (j *journal) reserveAsOf(k kind, size int, asOf Pos) []byte {
	b, p := j.reserve(k, 8+size, 0)
	if b == nil {
		return nil
	}
	if asOf == 0 {
		asOf = p
	}
	binary.LittleEndian.PutUint64(b[recordHeader:], uint64(asOf))
	return b[recordHeader+8:]
}

// moved appends as one record that src is settled and that the durable ones of
// dst stand in their queues.
func (j *journal) moved(src *Settle, dst []Enqueue) {
	_, size := sizeOf(dst, kindEnqueue)
	b, p := j.reserve(kindMove, 8+runBytes+size, 0)
	if b == nil {
		return
	}
	binary.LittleEndian.PutUint64(b[recordHeader:], uint64(p))
	r := runOf(src)
	j.putRun(b[recordHeader+8:], &r)
	j.putEntries(b[recordHeader+8+runBytes:], dst, kindEnqueue)
	j.enter(dst, kindHold)
}

// transacted appends as one record that the durable ones of entries stand in their
// queues and the durable ones of settles have left theirs; as several, if they are too
// many. The caller holds mu.
func (j *journal) transacted(entries []Enqueue, settles []Settle) {
	runs := j.runsOf(settles)
	n, size := sizeOf(entries, kindEnqueue)
	switch {
	case n+len(runs) > MaxTransaction:
		j.enqueued(entries)
		j.settled(settles)
		return
	case n+len(runs) > 0:
		b := j.reserveAsOf(kindTransact, 8+len(runs)*runBytes+size, 0)
		if b == nil {
			return
		}
		binary.LittleEndian.PutUint64(b, uint64(len(runs)))
		b = b[8:]
		for i := range runs {
			j.putRun(b, &runs[i])
			b = b[runBytes:]
		}
		j.putEntries(b, entries, kindEnqueue)
	}
	j.enter(entries, kindHold)
}

// amended appends the journal's amendments among those given. The caller holds mu.
func (j *journal) amended(changes []Amend) {
	j.amends = j.amends[:0]
	for i := range changes {
		if a := &changes[i]; a.journaled() {
			j.amends = append(j.amends, a.amendment())
		}
	}
	for rest := j.amends; len(rest) > 0; {
		n := min(len(rest), perRecord)
		j.putAmends(rest[:n], 0)
		rest = rest[n:]
	}
}

// putAmends appends amendments that hold as of a position; 0: the record's own.
func (j *journal) putAmends(amends []amendment, asOf Pos) {
	b := j.reserveAsOf(kindAmend, len(amends)*amendBytes, asOf)
	if b == nil {
		return
	}
	for i := range amends {
		a := &amends[i]
		putAmend(b[i*amendBytes:], a)
		j.alter(uint64(a.segment))
	}
}
