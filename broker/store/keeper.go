package store

import (
	"math"
	"time"

	"go.uber.org/zap"
)

// The keeper is one goroutine that does what nobody waits for: it drops segments
// that nothing refers to, makes spare files, moves sealed segments from memory to
// disk, and copies the last messages out of segments that are mostly garbage. It
// sleeps until a segment is sealed or dies.
type keeper struct {
	volatile *volatileLog
	journal  *journal // nil: memory only
	relocate func(queue, seq uint64, old, new Pos) (Terms, bool)
	log      *zap.Logger
	opts     tuning

	bell, stop, ended chan struct{}

	cramped bool // the last spill failed

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
		k.spill()
	}
	if k.relocate != nil {
		k.compact()
	}
	k.volatile.unmap()
	return enough
}

// provide does what publishers may be waiting for: it turns dead segments into
// space and space into spare files.
func (k *keeper) provide() bool {
	if k.journal == nil {
		return true
	}
	k.journal.drop()
	return k.journal.refill(math.MaxInt)
}

func (k *keeper) close() {
	close(k.stop)
	<-k.ended
}
