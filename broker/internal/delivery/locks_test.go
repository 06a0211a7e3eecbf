package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadline"
	"curfew/broker/queue"
)

func newLockTable() *lockTable { return &lockTable{of: map[queue.Seq]lock{}} }

// However long one message is held, what was settled meanwhile costs nothing, and
// in a steady flow nothing is allocated.
func TestLocksForgetWhatWasSettled(t *testing.T) {
	l := newLockTable()
	assert.True(t, l.add(1, lock{until: 100}))
	next := queue.Seq(2)
	flow := func() {
		for range 10_000 {
			l.add(next, lock{until: 200})
			l.release(next)
			next++
		}
	}
	flow()
	assert.Zero(t, testing.AllocsPerRun(10, flow))
	assert.LessOrEqual(t, l.dues.Len(), 2*queue.StaleKept)
	k, _ := l.find(1)
	assert.Equal(t, deadline.Instant(100), k.until)
	l.add(1, lock{until: 300})
	lapsed := func(now deadline.Instant) (seqs []queue.Seq) {
		for {
			seq, _, stale, ok := l.pop(now)
			if !ok {
				return seqs
			}
			if !stale {
				seqs = append(seqs, seq)
			}
		}
	}
	assert.Empty(t, lapsed(299), "delivered again: the new lock counts")
	assert.Equal(t, []queue.Seq{1}, lapsed(300))
	assert.Zero(t, l.dues.Stale)
	assert.Zero(t, l.dues.Len())
	assert.True(t, l.add(next, lock{until: 400}))

	all := Locks{table: l}
	all.shrinkLocked()
	assert.NotNil(t, all.table)
	l.release(next)
	all.shrinkLocked()
	assert.Nil(t, all.table)
}

// TestLocksOfAShorterDuration: a lock that expires before many others takes no longer to make.
func TestLocksOfAShorterDuration(t *testing.T) {
	l := newLockTable()
	for n := range 200_000 {
		l.add(queue.Seq(n+1), lock{until: deadline.Instant(1_000_000 + n)})
	}
	began := time.Now()
	for n := range 5_000 {
		l.add(queue.Seq(200_001+n), lock{until: deadline.Instant(1 + n)})
	}
	assert.Less(t, time.Since(began), time.Second)
}

func BenchmarkLocks(b *testing.B) {
	for name, shorter := range map[string]deadline.Instant{"in order": 0, "shorter": 1 << 40} {
		b.Run(name, func(b *testing.B) {
			l := newLockTable()
			const held = 200_000
			for n := range held {
				l.add(queue.Seq(n+1), lock{until: deadline.Instant(1<<41 + n)})
			}
			for n := 0; b.Loop(); n++ {
				l.add(queue.Seq(held+n+1), lock{until: deadline.Instant(1<<41+held+n) - shorter})
				l.release(queue.Seq(n + 1))
			}
		})
	}
}
