package broker

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// inTurns runs fn in virtual time with all turns but one taken for good.
func inTurns(t *testing.T, fn func(*turns)) {
	synctest.Test(t, func(*testing.T) {
		var all turns
		for range all.most() - 1 {
			all.enter(&turn{of: new(share)})
		}
		fn(&all)
	})
}

// A tenant that takes the processor for long, with many connections, makes another wait for one turn,
// and each of its own connections has its part of what is left, however long its turns are.
func TestProcessorTimeIsShared(t *testing.T) {
	const longest = 60 * time.Millisecond
	inTurns(t, func(all *turns) {
		var greedy, modest share
		var working sync.WaitGroup
		until := time.Now().Add(time.Minute)
		type spent struct{ used, waited time.Duration }
		work := func(of *share, each time.Duration) *spent {
			x, s := &turn{of: of}, new(spent)
			working.Go(func() {
				for time.Now().Before(until) {
					before := time.Now()
					assert.True(t, all.begin(x, nil))
					s.waited = max(s.waited, time.Since(before))
					time.Sleep(each)
					all.end(x)
					s.used += each
				}
			})
			return s
		}
		small := work(&modest, time.Millisecond)
		var large []*spent
		for each := time.Millisecond; each <= longest; each += time.Millisecond {
			large = append(large, work(&greedy, each))
		}
		working.Wait()
		assert.LessOrEqual(t, small.waited, longest)
		for _, s := range large {
			assert.InDelta(t, 1, s.used.Seconds(), 0.1)
		}
	})
}

// Who pauses does not save up time.
func TestPausesDoNotSaveUpProcessorTime(t *testing.T) {
	inTurns(t, func(all *turns) {
		var busy, idle share
		one, other := &turn{of: &busy}, &turn{of: &idle}
		all.begin(one, nil)
		time.Sleep(time.Hour)
		all.end(one)
		all.begin(one, nil)
		var order []string
		var waiting sync.WaitGroup
		for i, x := range []*turn{other, {of: &busy}, {of: &idle}, {of: &busy}} {
			waiting.Go(func() {
				time.Sleep(time.Duration(i))
				all.begin(x, nil)
				order = append(order, map[*share]string{&busy: "busy", &idle: "idle"}[x.of])
				time.Sleep(time.Second)
				all.end(x)
			})
		}
		time.Sleep(time.Second / 2)
		all.end(one)
		waiting.Wait()
		assert.Equal(t, []string{"idle", "busy", "idle", "busy"}, order)
	})
}

func TestWaitForATurnEnds(t *testing.T) {
	inTurns(t, func(all *turns) {
		var of share
		first, second, third := &turn{of: &of}, &turn{of: &of}, &turn{of: &of}
		all.begin(first, nil)
		gone := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(gone) })
		assert.False(t, all.begin(second, gone))
		assert.False(t, second.held)
		time.AfterFunc(time.Second, func() { all.end(first) })
		assert.True(t, all.begin(third, make(chan struct{})))
		all.end(third)
		assert.Empty(t, all.waiting)
		assert.Equal(t, all.most()-1, all.running)
		assert.False(t, slices.Contains([]bool{first.held, third.held}, true))
	})
}
