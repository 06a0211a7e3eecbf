package memory

import (
	"runtime/debug"
	"sync"
	"time"
)

// ShrinkAfter is how long a queue is unused and empty before it releases the memory that it keeps
// for future messages. A queue that is emptied and filled all the time keeps it.
const ShrinkAfter = time.Second

// collectAfter is how many queues release memory before garbage is collected. An idle process does
// that by itself only every two minutes.
const collectAfter = 1000

// Shrinker remembers the queues that have become empty. Its timer runs only while there are any,
// so an idle broker does nothing.
type Shrinker struct {
	mu      sync.Mutex // leaf
	emptied []shrinkable
	shrunk  int // since the last collection
	stopped bool
}

// shrinkable is something that keeps memory for future messages: a queue, or the delayed messages of
// a virtual host.
type shrinkable interface {
	// ShrinkIfIdle releases that memory unless it was used recently, and reports whether it did.
	ShrinkIfIdle() bool
}

// Add calls q.ShrinkIfIdle after ShrinkAfter.
func (t *Shrinker) Add(q shrinkable) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.emptied) == 0 && !t.stopped {
		time.AfterFunc(ShrinkAfter, t.run)
	}
	t.emptied = append(t.emptied, q)
}

// Stop forgets all queues. A timer that is set does nothing when it fires.
func (t *Shrinker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped, t.emptied = true, nil
}

// run shrinks every queue that was emptied. A queue that has been used since adds itself again.
func (t *Shrinker) run() {
	t.mu.Lock()
	queues := t.emptied
	t.emptied = nil
	t.mu.Unlock()
	shrunk := 0
	for _, q := range queues {
		if q.ShrinkIfIdle() {
			shrunk++
		}
	}
	if t.due(shrunk) {
		debug.FreeOSMemory()
	}
}

// due counts queues that have released memory, and reports whether it is time to collect garbage.
func (t *Shrinker) due(shrunk int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shrunk += shrunk; t.shrunk < collectAfter {
		return false
	}
	t.shrunk = 0
	return true
}
