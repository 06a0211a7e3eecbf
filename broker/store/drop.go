package store

import (
	"encoding/binary"
	"slices"

	"go.uber.org/zap"
)

// Dropping a segment forgets all its records. That must not bring a message back
// or lose one, so a segment without referenced messages still waits for others:
//
//   - A settlement is needed while the settled message exists, since the record
//     that entered it into the queue may exist too.
//   - An entry is needed while its message exists and may be referred to, and
//     with it what amends it.
//   - A copy that compaction made is needed while its original exists: a later
//     settlement names the copy, and must be kept for the original's sake.
//
// The first two can be carried, that is appended again, and are when it frees at
// least half of the segment; else the segment waits until what they speak of is
// dropped. Messages stand before all records that speak of them, and a carried
// settlement or amendment says as of when it held, so order among the rest never
// matters.
//
// A segment is dropped by a record that says so. Only when that is on the disk,
// and with it all that was carried before, the file is removed.

// drop drops what can be dropped. Only the keeper calls it.
func (j *journal) drop() {
	var needless, waiting []*segment
	for _, s := range j.takeBuried() {
		if s.dropped = j.speaksOfNone(s) || j.carry(s); s.dropped {
			needless = append(needless, s)
		} else {
			waiting = append(waiting, s)
		}
	}
	j.mu.Lock()
	j.buried = append(j.buried, waiting...)
	j.recordDropped(needless)
	j.mu.Unlock()
	if len(needless) == 0 || j.sync() != nil {
		return
	}
	for _, s := range needless {
		j.remove(s)
	}
}

// takeBuried takes the dead segments whose files are complete, in ascending order.
func (j *journal) takeBuried() []*segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	var dead, rest []*segment
	for _, s := range j.buried {
		if s.complete {
			dead = append(dead, s)
		} else {
			rest = append(rest, s)
		}
	}
	j.buried = rest
	slices.SortFunc(dead, func(a, b *segment) int { return int(a.number) - int(b.number) })
	return dead
}

// exists reports whether a segment is there and going to stay. Only the keeper
// calls it, who alone drops segments.
func (j *journal) exists(number uint32) bool {
	s := j.table.get(uint64(number))
	return s != nil && !s.dropped
}

func (j *journal) existingOf(s numbers) (n int) {
	for _, number := range s {
		if j.exists(number) {
			n++
		}
	}
	return n
}

func (j *journal) speaksOfNone(s *segment) bool {
	return j.existingOf(s.enters)+j.existingOf(s.alters)+j.existingOf(s.origins) == 0
}

// carry appends again what s says of existing segments, if that frees at least
// half of it. It looks again only when half of those segments have gone.
func (j *journal) carry(s *segment) bool {
	others := j.existingOf(s.enters) + j.existingOf(s.alters)
	if j.existingOf(s.origins) > 0 || s.examined > 0 && others > s.examined/2 {
		return false
	}
	var needed carried
	s.eachFact(func(f *facts) { needed.collect(j, s, f) })
	if needed.bytes() > s.used/2 {
		s.examined = others
		return false
	}
	if !j.mayCarry(needed.bytes()) {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.enqueued(needed.entries)
	for _, c := range needed.settles {
		j.putRuns([]run{c.run}, c.asOf)
	}
	for i := range needed.amends {
		j.putAmends(needed.amends[i:i+1], needed.amended[i])
	}
	return j.err == nil
}

// mayCarry leaves the last of the reserve to what cannot wait.
func (j *journal) mayCarry(n int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.spared()-int64(n) >= j.floor(copying)
}

// carried is what is still needed of a segment.
type carried struct {
	entries []Enqueue
	size    int // of entries
	settles []carriedRun
	amends  []amendment
	amended []Pos // as of when each of amends held
}

type carriedRun struct {
	run
	asOf Pos
}

func (c *carried) collect(j *journal, s *segment, f *facts) {
	f.eachEntry(func(e Enqueue) {
		if n := e.Pos.segment(); n != s.number && j.exists(uint32(n)) {
			c.entries = append(c.entries, e)
			c.size += e.size()
		}
	})
	f.eachRun(func(r run) {
		if uint64(r.segment) != s.number && j.exists(r.segment) {
			c.settles = append(c.settles, carriedRun{r, f.asOf})
		}
	})
	f.eachAmend(func(a amendment) {
		if uint64(a.segment) != s.number && j.exists(a.segment) {
			c.amends, c.amended = append(c.amends, a), append(c.amended, f.asOf)
		}
	})
}

func (c *carried) bytes() int {
	return c.size + len(c.settles)*align(recordHeader+8+runBytes) +
		len(c.amends)*align(recordHeader+8+amendBytes)
}

// recordDropped says that the segments are not needed. The caller holds mu.
func (j *journal) recordDropped(needless []*segment) {
	if len(needless) == 0 {
		return
	}
	for _, s := range needless {
		j.existing.remove(s.number)
	}
	b, _ := j.reserve(kindDropped, 4*len(needless), 0)
	if b == nil {
		return
	}
	for i, s := range needless {
		binary.LittleEndian.PutUint32(b[recordHeader+4*i:], uint32(s.number))
	}
}

// remove takes a dropped segment off the disk and out of memory. A file that
// stays is removed by the next Open.
func (j *journal) remove(s *segment) {
	if s.file != nil {
		s.file.Close()
	}
	if err := j.fs.Remove(fileName(s.number)); err != nil {
		j.log.Warn("cannot remove a segment that is not needed", zap.Uint64("segment", s.number), zap.Error(err))
	}
	j.mu.Lock()
	j.forget(s)
	j.mu.Unlock()
	j.memory.dispose(s)
}

// eachFact calls fn for the records of a complete segment that say where messages
// stand.
func (s *segment) eachFact(fn func(*facts)) {
	s.eachRecord(func(at int, k kind, rec []byte) bool {
		if k.statesFacts() {
			f := factsOf(k, rec[recordHeader:], s.millis)
			fn(&f)
		}
		return true
	})
}

// eachRecord calls fn for the records of a sealed journal segment until false.
func (s *segment) eachRecord(fn func(at int, k kind, rec []byte) bool) {
	for at := fileHeader; at < s.used; {
		k, n := header(s.mem[at:])
		if !fn(at, k, s.mem[at:at+n]) {
			return
		}
		at += align(n)
	}
}
