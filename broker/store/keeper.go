package store

import (
	"math"
	"sync"
	"time"

	"go.uber.org/zap"
)

// The keeper is one goroutine that does what nobody waits for: it drops segments
// that nothing refers to, has memory and spare files ready, moves sealed segments
// from memory to disk, and copies the last messages out of segments that are mostly
// garbage. It sleeps until a segment is sealed or dies.
type keeper struct {
	memory   *mappings
	volatile *volatileLog
	journal  *journal    // nil: memory only
	define   func() bool // tries again to write definitions that could not be; false: not yet
	spilled  spill       // unused without a journal
	relocate func(queue, seq uint64, old, new Pos) (Terms, bool)
	log      *zap.Logger
	opts     tuning

	bell, stop, ended chan struct{}
	stopping          sync.Once

	// Scratch of compaction.
	found, held []Enqueue
	amends      []amendment
}

func (k *keeper) wake() {
	select {
	case k.bell <- struct{}{}:
	default:
	}
}

func (k *keeper) run() {
	defer close(k.ended)
	for {
		var retry <-chan time.Time
		if !k.round() {
			retry = time.After(k.opts.retry)
		}
		select {
		case <-k.stop:
			return
		case <-k.bell:
		case <-retry:
		}
	}
}

// round does all there is to do. It returns false if the disk is full.
func (k *keeper) round() bool {
	enough := k.provide()
	if k.journal != nil {
		k.journal.pageOut()
	}
	if k.relocate != nil {
		k.compact()
	}
	k.tidy()
	return enough
}

// provide does what publishers may be waiting for: it has memory ready, moves transient
// messages out of it, and turns dead segments into space and space into spare files.
func (k *keeper) provide() bool {
	k.memory.provide()
	if k.journal == nil {
		return true
	}
	k.spill()
	k.journal.drop()
	k.tidy()
	enough := k.journal.refill(math.MaxInt)
	return k.define() && enough
}

// tidy gives up memory that is not worth keeping, and places on disk that no memory
// shows any more.
func (k *keeper) tidy() {
	for _, s := range k.memory.tidy() {
		s.place.free()
	}
	if k.journal != nil {
		k.spilled.tidy(k.journal.isFull())
	}
}

// close ends the keeper, if it has not.
func (k *keeper) close() {
	k.stopping.Do(func() { close(k.stop) })
	<-k.ended
}
