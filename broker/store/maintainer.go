package store

import (
	"math"
	"sync"
	"time"

	"go.uber.org/zap"
)

// The maintainer is one goroutine that does what nobody waits for: it drops segments
// without references, keeps memory and spare files ready, moves sealed segments from memory
// to disk, and copies the last messages out of segments that are mostly garbage. It sleeps
// until a segment is sealed or dies.
type maintainer struct {
	memory   *mappings
	volatile *volatileLog
	journal  *journal    // nil: memory only
	define   func() bool // tries again to write definitions; false: still impossible
	relocate func(queue, seq uint64, old, new Pos) (Terms, bool)
	log      *zap.Logger
	opts     tuning

	bell, stop, ended chan struct{}
	stopping          sync.Once

	// Scratch space of compaction.
	found, references []Enqueue
	amends            []amendment
}

func (m *maintainer) run() {
	defer close(m.ended)
	resumed()
	for {
		var retry <-chan time.Time
		if !m.round() {
			retry = time.After(m.opts.retry)
		}
		select {
		case <-m.stop:
		case <-m.bell:
		case <-retry:
		}
		resumed()
		if m.stopped() {
			return
		}
	}
}

func (m *maintainer) stopped() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// round does all there is to do. It returns false when the disk is full.
func (m *maintainer) round() bool {
	enough := m.makeReady()
	if m.journal != nil {
		m.pageOut()
	}
	if m.relocate != nil {
		m.compact()
	}
	m.memory.unmapUnused()
	return enough
}

// makeReady does what publishers may be waiting for: it keeps memory ready, moves transient
// messages out of memory, and turns dead segments into space and space into spare files.
func (m *maintainer) makeReady() bool {
	m.memory.makeReady()
	if m.journal == nil {
		return true
	}
	m.spill()
	m.dropSegments()
	m.memory.unmapUnused() // the files of dropped segments have their space until then
	enough := m.journal.spare.refill(math.MaxInt)
	return m.define() && enough
}

// close stops the maintainer, if it is still running.
func (m *maintainer) close() {
	m.stopping.Do(func() { close(m.stop) })
	<-m.ended
	resumed()
}
