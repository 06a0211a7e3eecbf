package simulation

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// defaultSeeds take about 20 s with the race detector on two cores.
const defaultSeeds = 50

// TestSimulation runs seeds 1, 2, 3, ... SIMULATION_SEEDS is their number; SIMULATION_SEED
// replays one seed and prints its whole history.
func TestSimulation(t *testing.T) {
	if seed := number(t, "SIMULATION_SEED", 0); seed > 0 {
		if w := simulate(t, seed); w.failure == "" {
			t.Log(w.report(true))
		}
		return
	}
	var all totals
	n := number(t, "SIMULATION_SEEDS", defaultSeeds)
	t.Run("seeds", func(t *testing.T) {
		for seed := uint64(1); seed <= n; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				all.add(simulate(t, seed))
			})
		}
	})
	fmt.Printf("simulation: %d seeds, %s\n", n, &all)
}

func number(t *testing.T, name string, absent uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return absent
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// totals counts what was simulated.
type totals struct{ messages, expired, deadLettered, bounded, restarts, monitored atomic.Int64 }

func (n *totals) add(w *world) {
	for _, e := range w.model.all {
		n.messages.Add(1)
		if e.end == expired {
			n.expired.Add(1)
		}
		if len(e.deaths) > 0 {
			n.deadLettered.Add(1)
		}
	}
	n.bounded.Add(int64(w.model.count.bounded))
	n.restarts.Add(int64(w.restarts))
	if w.plan.monitored {
		n.monitored.Add(1)
	}
}

func (n *totals) String() string {
	return fmt.Sprintf("%d of them monitored; %d messages in queues, %d expired, %d were dead letters, %d were bounded; %d restarts",
		n.monitored.Load(), n.messages.Load(), n.expired.Load(), n.deadLettered.Load(), n.bounded.Load(), n.restarts.Load())
}

// simulate runs one seed and fails t if anything is wrong.
func simulate(t *testing.T, seed uint64) (w *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, rng := newPlan(seed)
		w = newWorld(t, p, rng)
		w.run()
		w.finish()
		if w.failure != "" {
			t.Error(w.report(os.Getenv("SIMULATION_SEED") != ""))
		}
	})
	return w
}

// TestSeedsReplay: without monitors, whose goroutines the seed does not order, the history
// of a seed is always the same.
func TestSeedsReplay(t *testing.T) {
	left := map[bool]int{false: 4, true: 1} // by whether the seed has a directory
	for seed := uint64(1); left[false]+left[true] > 0; seed++ {
		p, _ := newPlan(seed)
		if p.monitored || left[p.disk] == 0 {
			continue
		}
		left[p.disk]--
		first, again := simulate(t, seed), simulate(t, seed)
		require.Equal(t, first.history, again.history, "seed %d", seed)
	}
}
