package store

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// journal is the log that survives. Appending writes to the memory of the active
// segment only; the committer writes that memory to the segment's file.
type journal struct {
	appender
	fs   fileSystem
	opts tuning
	id   uint64 // of the store; in every file and checksum
	log  *zap.Logger

	define func() error // writes the definitions that records may speak of

	filesMu sync.Mutex // over making and removing spare files; taken before mu

	// All that follows is guarded by mu.

	marked   bool       // the active segment's mark of the next write stands
	from     int        // first byte of the active segment that was not handed over
	tails    []part     // of sealed segments, not handed over
	fresh    int        // bytes not handed over to the committer
	unsaved  int        // bytes not written to a file
	fact     Pos        // end of the last record that Commit has to wait for
	existing spans      // sealed segments that are not dropped
	buried   []*segment // sealed, without references, not dropped
	runs     []run      // scratch
	amends   []amendment
	commit   committing
	spare    spareFiles
	err      error // why the journal failed
}

// journaled is what the journal keeps of a segment besides. Guarded by mu, but
// for what is one goroutine's own.
type journaled struct {
	file     file // open from the first write until paged; the committer's until complete, then the keeper's
	complete bool // ended, written and synced
	dropped  bool // nothing may speak of it any more; the keeper's own
	millis   bool // of an older version: expiry in Unix ms

	// The other segments that this one's records speak of. While such a segment
	// exists, what is said of it must not be forgotten: see drop.go.
	enters, alters, origins numbers
	examined                int // how many of them existed when last looked at; the keeper's own
}

// part is a piece of a segment that one write takes to the file.
type part struct {
	seg      *segment
	from, to int
	ended    bool // the segment is complete with it
}

const (
	fileHeader = 64
	// endReserve is kept free in every segment, to end it.
	endReserve = markBytes + endBytes
)

// tuning are the numbers that tests choose smaller.
type tuning struct {
	segmentBytes int
	reserve      int64         // bytes of disk kept back from publishing
	ahead        int64         // bytes of disk allocated ahead of that
	resident     int64         // bytes of sealed segments kept in anonymous memory
	slack        int64         // bytes of garbage not worth compacting
	overflow     int64         // bytes of sealed transient segments in anonymous memory at which publishers wait
	backlog      int           // unwritten bytes at which publishers wait
	burst        int           // unwritten bytes that are written without lingering
	linger       time.Duration // until what nobody waits for is written
	lazy         time.Duration // until what nobody waits for is synced; 0: never
	announce     time.Duration // until a last mark is written
	retry        time.Duration // of allocation on a full disk
	room         int           // bytes that can at least be appended to a new file of definitions
	mode         SyncMode
	onSync       func(time.Duration)
	onFull       func(error)
}

// usable is nil, or why nothing can be appended. The caller holds mu.
func (j *journal) usable() error {
	if j.err != nil {
		return j.err
	}
	if j.closed {
		return ErrClosed
	}
	return nil
}

// fail makes err the end of the journal: what was not yet confirmed never will
// be. A failed write or sync is not tried again, since the system may have
// dropped the data and would report success. It returns what usable will.
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
	j.ring()
}

// reserve takes n bytes for a record that fits, starting a segment if need be.
// After a failure it returns nil. The caller holds mu.
func (j *journal) reserve(k kind, payload, refs int) ([]byte, Pos) {
	if j.usable() != nil {
		return nil, 0
	}
	n := align(recordHeader + payload)
	if !j.holds(n) {
		if err := j.roll(n); err != nil {
			j.failLocked(err)
			return nil, 0
		}
	}
	j.mark()
	s, at := j.take(n, refs)
	j.count(n)
	if k != kindDropped && k != kindHold {
		j.fact = makePos(false, s.number, s.used)
	}
	putHeader(s.mem[at:], k, payload)
	return s.mem[at : at+n], makePos(false, s.number, at)
}

// holds reports whether a record of n bytes fits into the active segment.
func (j *journal) holds(n int) bool { return j.fits(markBytes + n + endReserve) }

// segmentFor is the size of the segment that is started for a record of n bytes.
func (j *journal) segmentFor(n int) int {
	list := align(recordHeader + 8*(len(j.existing)+1))
	return max(j.memory.size, pageAlign(fileHeader+markBytes+list+markBytes+n+endReserve))
}

// mark starts the bytes of the next write, unless that has been done. The
// committer fills it in.
func (j *journal) mark() {
	if j.marked {
		return
	}
	j.marked = true
	s, at := j.take(markBytes, 0)
	putHeader(s.mem[at:], kindMark, markBytes-recordHeader)
	j.count(markBytes)
}

func (j *journal) count(n int) {
	j.fresh += n
	j.unsaved += n
	j.commit.appended(j)
}

// roll ends the active segment and starts one that a record of n bytes fits into.
// Its first record names the segments that exist, so that recovery misses one
// that was lost.
func (j *journal) roll(n int) error {
	mem, err := j.memory.get(j.segmentFor(n))
	if err != nil {
		return err
	}
	if s := j.active; s != nil {
		j.mark()
		_, at := j.take(endBytes, 0)
		putHeader(s.mem[at:], kindEnd, 0)
		j.count(endBytes)
		j.tails = append(j.tails, part{seg: s, from: j.from, to: s.used, ended: true})
		j.existing.add(s.number)
		j.seal()
	}
	s := j.start(mem)
	s.used, j.from, j.marked = fileHeader, 0, false
	putFileHeader(mem, j.id, s.number)
	j.spare.owed += int64(len(mem))
	j.mark()
	list := 8 * len(j.existing)
	_, at := j.take(align(recordHeader+list), 0)
	putHeader(mem[at:], kindSegments, list)
	putSpans(mem[at+recordHeader:], j.existing)
	j.count(fileHeader + align(recordHeader+list))
	return nil
}

func putSpans(b []byte, s spans) {
	for i, r := range s {
		binary.LittleEndian.PutUint32(b[8*i:], r.first)
		binary.LittleEndian.PutUint32(b[8*i+4:], r.count)
	}
}

// put appends a message. origin is what it is a copy of, or 0.
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
	defer j.mu.Unlock()
	if err := j.admit(align(n), may); err != nil {
		return 0, err
	}
	b, p := j.reserve(kindMessage, n-recordHeader, max(refs, 1))
	if b == nil {
		return 0, j.usable()
	}
	putMessage(b, n, m, slots)
	if origin != 0 {
		slotsOf(b)[0] = slot{uint64(origin), 0}
		j.active.origins.add(origin.segment())
	}
	return p, nil
}
