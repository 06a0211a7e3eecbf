package store

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// journal is the durable log. Appending only writes to the memory of the active segment;
// the committer writes that memory to the segment's file.
type journal struct {
	appender
	fs   fileSystem
	opts tuning
	id   uint64 // of the store; part of every file and checksum
	log  *zap.Logger

	define func() error // writes the definitions that records may refer to

	unended *segment // the last segment of the last run, if its file is not ended yet; used by the committer only

	// Everything below is guarded by mu.

	marked       bool        // the active segment has the mark of the next write
	from         int         // first byte of the active segment that is not handed over
	tails        []part      // of sealed segments, not handed over
	fresh        int         // bytes not handed over to the committer
	unsaved      int         // bytes not written to a file
	fact         Pos         // end of the last record that Commit must wait for
	deadSegments []*segment  // sealed, without references, not dropped
	existing     numberSpans // the segments that have not been dropped
	runs         []run       // scratch space
	amends       []amendment
	commit       commitState
	copies       *sync.WaitGroup // of records not handed over that are being written; nil: none
	spare        spareFiles
	entered      Pos   // end of the last record that is not only about what leaves, or moves from queue to queue
	err          error // why the journal failed
}

// journaled is the journal's own state of a segment. It is guarded by mu, except for the
// fields that belong to one goroutine.
type journaled struct {
	file     file // open from the first write until paged; used by the committer until complete, then by the maintainer
	complete bool // ended, written and synced
	dropped  bool // nothing may refer to it from now on; set by the maintainer, which alone reads it without mu

	// The other segments that this one's records refer to. While such a segment exists,
	// these records must not be forgotten: see drop.go.
	enters, alters, origins numberSet
	moved                   Pos  // end of the last record that moved one of its messages, or replaced it; guarded by mu, and constant once it is dead
	examined                int  // how many of them existed the last time; used by the maintainer only
	emptied                 bool // its file has been emptied; used by the maintainer only
}

// part is a piece of a segment that is written to the file in one write.
type part struct {
	seg      *segment
	from, to int
	ended    bool // it completes the segment
}

const (
	fileHeader = 64
	// endReserve is kept free in every segment for its end record.
	endReserve = markBytes + endBytes
)

// tuning holds the numbers that tests choose smaller.
type tuning struct {
	segmentBytes int
	reserve      int64         // bytes of disk reserved: publishing does not use them
	ahead        int64         // bytes of disk allocated ahead, beyond the reserve
	resident     int64         // bytes of sealed segments kept in anonymous memory
	slack        int64         // bytes of garbage not worth compacting
	overflow     int64         // bytes of sealed transient segments in anonymous memory at which publishers wait
	backlog      int           // unwritten bytes at which publishers wait
	burst        int           // unwritten bytes that are written without lingering
	linger       time.Duration // until what nobody waits for is written
	lazy         time.Duration // until what nobody waits for is synced; 0: never
	announce     time.Duration // until a last mark is written
	retry        time.Duration // of allocation on a full disk
	room         int           // bytes that can be appended to a new file of definitions, at least
	mode         SyncMode
	onSync       func(time.Duration)
	onFull       func(error)
}

// usableLocked returns nil, or why nothing can be appended.
func (j *journal) usableLocked() error {
	if j.err != nil {
		return j.err
	}
	if j.closed {
		return errClosed
	}
	return nil
}

// fail ends the journal with err: what is not confirmed yet never will be. A failed write
// or sync is not tried again, since the system may have dropped the data and would then
// report success. fail returns what usableLocked will return.
func (j *journal) fail(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failLocked(err)
	return j.err
}

func (j *journal) failLocked(err error) {
	if j.err != nil {
		return
	}
	j.err = fmt.Errorf("store: the journal has failed, restart to recover: %w", err)
	j.commit.failed <- j.err
	j.space.Broadcast()
	j.wakeCommitterLocked()
}

// reserveLocked takes n bytes for a record that fits. If necessary it starts a segment.
// After a failure it returns nil.
func (j *journal) reserveLocked(k kind, payload, refs int) ([]byte, Pos) {
	if j.usableLocked() != nil {
		return nil, 0
	}
	n := align(recordHeader + payload)
	if !j.hasRoomLocked(n) {
		since := time.Now()
		mem, err := j.memory.get(j.segmentSizeLocked(n))
		if err != nil {
			j.failLocked(err)
			return nil, 0
		}
		j.rollLocked(mem)
		j.noteHeld(since)
	}
	j.markLocked()
	s, at := j.takeLocked(n, refs)
	j.countLocked(n)
	if k != kindDropped && k != kindHold {
		j.fact = makePos(false, s.number, s.used)
	}
	if k == kindEnqueue || k == kindTransact {
		j.entered = j.fact
	}
	putHeader(s.mem[at:], k, payload)
	return s.mem[at : at+n], makePos(false, s.number, at)
}

// hasRoomLocked reports whether a record of n bytes fits into the active segment.
func (j *journal) hasRoomLocked(n int) bool { return j.fitsLocked(markBytes + n + endReserve) }

// segmentSizeLocked returns the size of a segment that is started for a record of n bytes.
func (j *journal) segmentSizeLocked(n int) int {
	rest := fileHeader + markBytes + recordHeader + markBytes + n + endReserve
	return max(j.memory.size, pageAlign(rest+8*len(j.existing)))
}

// markLocked starts the bytes of the next write, unless that has been done. The committer
// fills in the mark.
func (j *journal) markLocked() {
	if j.marked {
		return
	}
	j.marked = true
	s, at := j.takeLocked(markBytes, 0)
	putHeader(s.mem[at:], kindMark, markBytes-recordHeader)
	j.countLocked(markBytes)
}

// countLocked counts n bytes that were appended. It wakes the committer if that gives it something to do.
func (j *journal) countLocked(n int) {
	j.fresh += n
	j.unsaved += n
	if j.commit.sleep == idle || j.commit.sleep == lingering && j.fresh >= j.opts.burst {
		j.wakeCommitterLocked()
	}
}

// rollLocked ends the active segment and makes mem the new one. The
// first record of a segment lists the segments that exist, so that recovery notices when
// one is lost.
func (j *journal) rollLocked(mem []byte) {
	if s := j.active; s != nil {
		j.markLocked()
		_, at := j.takeLocked(endBytes, 0)
		putHeader(s.mem[at:], kindEnd, 0)
		j.countLocked(endBytes)
		j.tails = append(j.tails, part{seg: s, from: j.from, to: s.used, ended: true})
		j.sealLocked()
	}
	s := j.startLocked(mem)
	s.used, j.from, j.marked = fileHeader, 0, false
	putFileHeader(mem, j.id, s.number)
	j.spare.owed += int64(len(mem))
	j.markLocked()
	runs := j.existing
	n := align(recordHeader + 8*len(runs))
	_, at := j.takeLocked(n, 0)
	putHeader(mem[at:], kindSegments, 8*len(runs))
	for i, r := range runs {
		binary.LittleEndian.PutUint32(mem[at+recordHeader+8*i:], r.First)
		binary.LittleEndian.PutUint32(mem[at+recordHeader+8*i+4:], r.Count)
	}
	j.countLocked(fileHeader + n)
	j.existing.Add(s.number)
}

// firstRecordLocked is the offset of the first record behind the list of segments, if a segment were
// started now.
func (j *journal) firstRecordLocked() int {
	return fileHeader + markBytes + align(recordHeader+8*len(j.existing))
}

// put appends a message. origin is the position that it is a copy of, or 0.
func (j *journal) put(m *Message, refs int, origin Pos, may permission) (Pos, error) {
	slots := 0
	if origin != 0 {
		slots = 1
	}
	n, err := messageBytes(m, slots)
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	if err := j.spare.admitLocked(align(n)+refs*2*entryBytes, may); err != nil {
		j.mu.Unlock()
		return 0, err
	}
	b, p := j.reserveLocked(kindMessage, n-recordHeader, max(refs, 1))
	if b == nil {
		defer j.mu.Unlock()
		return 0, j.usableLocked()
	}
	if may != moving {
		j.entered = j.fact
	}
	if origin != 0 {
		j.active.origins.Add(origin.segment())
	}
	if n > largeRecord { // the committer waits until it is written
		if j.copies == nil {
			j.copies = new(sync.WaitGroup)
		}
		j.copies.Add(1)
		defer j.copies.Done()
		j.mu.Unlock()
	} else {
		defer j.mu.Unlock()
	}
	putMessage(b, n, m, slots)
	if origin != 0 {
		slotsOf(b)[0] = slot{uint64(origin), 0}
	}
	return p, nil
}
