//go:build schedule

package store

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

var scheduleSeeds = flag.Uint64("seeds", 100, "number of seeds of TestSchedules")

// TestSchedules is TestCrashes with a schedule that is chosen from the seed as well: the
// committer, the maintainer and two callers take turns wherever one of them releases a lock.
func TestSchedules(t *testing.T) {
	first, last := *crashSeed, *crashSeed
	if first == 0 {
		first, last = 1, *scheduleSeeds
	}
	choices := 0
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { choices += scheduled(t, seed).choices })
	}
	t.Logf("%d choices", choices)
}

// A seed alone determines a run.
func TestScheduleRepeats(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := scheduled(t, seed), scheduled(t, seed)
		if a.trace != b.trace {
			t.Errorf("seed %d: two runs differ: %d choices and %d", seed, a.choices, b.choices)
		}
	}
}

// scheduled runs several lives.
func scheduled(t *testing.T, seed uint64) (s *scheduler) {
	synctest.Test(t, func(t *testing.T) {
		s = newScheduler(seed)
		defer s.stop()
		w := newWorld(t, seed)
		w.ids = largeIDs
		w.use = w.useTwice
		cut, moved := w.lives(seed)
		t.Logf("%d choices, %d torn tails, %d entries relocated", s.choices, cut, moved)
	})
	return s
}

// useTwice is two callers at the same time.
func (w *world) useTwice(s *Store) {
	ended := make(chan struct{})
	go w.useToo(s, ended)
	defer func() { // even if crashNow fails
		<-ended
		resumed()
	}()
	for range 40 {
		w.run(s, 10)
		w.crashNow()
	}
}

func (w *world) useToo(s *Store, ended chan struct{}) {
	defer close(ended)
	resumed()
	for range 40 {
		w.run(s, 10)
	}
}

// crashNow checks what a restart would find if the machine crashed at this moment.
func (w *world) crashNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	confirmed := w.confirmed
	defer func() { w.confirmed = confirmed }()
	r := newRecovery(w.afterCrash(), zap.NewNop(), nil)
	defer r.unmap()
	queues, err := r.read()
	require.NoError(w.t, err)
	w.explain(w.read(queues, func(p Pos) Message { return viewMessage(r.file(p.segment()).mem[p.offset():]) }))
}
