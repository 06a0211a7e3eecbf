package store

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// bench is a store on a crash disk whose keeper works only when told to.
type bench struct {
	t    *testing.T
	disk *crashDisk
	opts Options
	*Store
}

func newBench(t *testing.T, o Options) *bench {
	b := &bench{t: t, disk: newCrashDisk(), opts: o}
	b.open()
	return b
}

func (b *bench) open() *Recovery {
	b.t.Helper()
	t := tiny(SyncGroup)
	t.ahead, t.slack = 64*int64(t.segmentBytes), 0
	s, r, err := openOn(b.disk, t, &b.opts)
	require.NoError(b.t, err)
	s.keeper.close()
	b.Store = s
	b.journal.refill(100)
	return r
}

func (b *bench) keep() { b.keeper.round() }

func (b *bench) shutdown() {
	require.NoError(b.t, b.Close())
}

// restart cuts the power and opens again.
func (b *bench) restart() *Recovery {
	b.t.Helper()
	b.shutdown()
	b.disk = b.disk.afterCrash(rand.New(rand.NewPCG(1, 1)), 0)
	return b.open()
}

// publish puts a message of one queue and enters it.
func (b *bench) publish(seq uint64) Enqueue {
	b.t.Helper()
	p, err := b.Put(text(int(seq), 64), true, 1)
	require.NoError(b.t, err)
	e := Enqueue{Queue: 1, Seq: seq, Pos: p, Durable: true}
	b.Enqueued([]Enqueue{e})
	return e
}

func (b *bench) settle(e Enqueue) {
	b.Settled([]Settle{{Queue: e.Queue, Seq: e.Seq, Pos: e.Pos, Durable: true}})
}

// fill ends the active segment, with messages that are settled in it.
func (b *bench) fill() {
	b.t.Helper()
	for until := max(b.active(), 1) + 1; b.active() < until; {
		p, err := b.Put(text(0, 200), true, 1)
		require.NoError(b.t, err)
		b.Release(p)
	}
	commit(b.t, b.Store)
}

// active is the number of the segment that is appended to.
func (b *bench) active() uint64 {
	b.journal.mu.Lock()
	defer b.journal.mu.Unlock()
	if b.journal.active == nil {
		return 0
	}
	return b.journal.active.number
}

func (b *bench) has(number uint64) bool { return b.journal.table.get(number) != nil }

func seqs(r *Recovery) (seqs []uint64) {
	for _, q := range r.Queues {
		for _, e := range q.Entries {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

func TestDeadSegmentsAreDropped(t *testing.T) {
	b := newBench(t, Options{})
	b.fill()
	b.fill()
	require.True(t, b.has(1))
	b.keep()
	require.False(t, b.has(1))
	require.False(t, b.has(2))
	require.True(t, b.has(3))
	require.Nil(t, b.disk.names[fileName(1)])
	require.Empty(t, seqs(b.restart()))
	b.shutdown()
}

// A settlement must not be forgotten while the settled message is on the disk.
func TestSettlementOutlivesItsSegment(t *testing.T) {
	b := newBench(t, Options{})
	stays, leaves := b.publish(1), b.publish(2)
	b.fill()
	b.settle(leaves) // in segment 2
	b.fill()
	b.keep()
	require.True(t, b.has(1), "message 1 lives there")
	require.False(t, b.has(2), "its settlement was carried")
	require.Equal(t, []uint64{1}, seqs(b.restart()))
	require.Equal(t, text(1, 64), b.View(stays.Pos))
	b.shutdown()
}

// After a restart a queue gives the numbers of settled messages again. A carried
// settlement is about the first use.
func TestCarriedSettlementIsOfItsTime(t *testing.T) {
	b := newBench(t, Options{})
	b.publish(1)
	leaves := b.publish(2)
	b.fill()
	b.settle(leaves)
	b.fill()
	require.Equal(t, []uint64{1}, seqs(b.restart()))
	again := b.publish(2)
	b.keep()
	require.False(t, b.has(2))
	commit(t, b.Store)
	require.Equal(t, []uint64{1, 2}, seqs(b.restart()))
	require.Equal(t, text(2, 64), b.View(again.Pos))
	b.shutdown()
}

// A segment full of settlements waits for the messages it speaks of.
func TestSettlementsWaitForTheirMessages(t *testing.T) {
	b := newBench(t, Options{})
	var leave []Enqueue
	b.publish(1000)
	for seq := uint64(1); b.active() < 8; seq++ {
		leave = append(leave, b.publish(seq))
		if seq%2 == 0 {
			b.publish(1000 + seq)
		}
	}
	b.fill()
	first := b.active()
	for _, e := range leave {
		b.settle(e)
	}
	b.fill()
	live := len(seqs(b.restart()))
	b.keep()
	b.keep()
	require.True(t, b.has(first), "carrying it would free nothing")
	require.Len(t, seqs(b.restart()), live)
	b.shutdown()
}

// relocator is one queue for the store to move messages of.
type relocator struct {
	entries map[uint64]Pos
	terms   map[uint64]Terms
}

func (r *relocator) relocate(_, seq uint64, old, now Pos) (Terms, bool) {
	if p, ok := r.entries[seq]; !ok || p != old {
		return Terms{}, false
	}
	r.entries[seq] = now
	return r.terms[seq], true
}

// A copy ties the settlements that name it to the original.
func TestCopyWaitsForItsOriginal(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newBench(t, Options{Relocate: r.relocate})
	e := b.publish(1)
	b.Retain(e.Pos, 1) // somebody looks at it for long
	r.entries[1] = e.Pos
	for b.active() < 6 {
		b.fill()
	}
	b.keep() // drops 2 to 5 and evacuates 1
	moved := r.entries[1]
	require.NotEqual(t, e.Pos, moved)
	require.Equal(t, uint64(6), moved.segment())
	require.Equal(t, text(1, 64), b.View(moved))
	b.fill()
	delete(r.entries, 1)
	e.Pos = moved
	b.settle(e) // in 7
	b.fill()
	b.keep()
	b.keep()
	require.True(t, b.has(1), "it is being looked at")
	require.True(t, b.has(6), "the copy waits for 1")
	b.fill()
	b.keep()
	require.Empty(t, seqs(b.restart()), "the original must not come back")
	b.keep()
	b.keep()
	require.False(t, b.has(1))
	require.False(t, b.has(6))
	b.shutdown()
}

func TestCompactionOfTheJournal(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newBench(t, Options{Relocate: r.relocate})
	for seq := uint64(1); b.active() < 20; seq++ {
		e := b.publish(seq)
		if seq%16 == 0 {
			r.entries[seq] = e.Pos
			continue
		}
		b.settle(e)
	}
	commit(t, b.Store)
	for range 5 {
		b.keep()
		commit(t, b.Store)
	}
	st := b.Stats()
	require.Equal(t, int64(len(r.entries)), st.Messages)
	require.Less(t, st.Segments, 10)
	for seq, p := range r.entries {
		require.Equal(t, text(int(seq), 64), b.View(p))
	}
	live := len(r.entries)
	clear(r.entries)
	found := b.restart()
	require.Len(t, seqs(found), live)
	for _, e := range found.Queues[0].Entries {
		require.Equal(t, text(int(e.Seq), 64), b.View(e.Pos))
	}
	b.shutdown()
}

func TestCompactionOfTheVolatileLog(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newBench(t, Options{Relocate: r.relocate})
	for seq := uint64(1); b.volatile.next < 20; seq++ {
		p, err := b.Put(text(int(seq), 64), false, 1)
		require.NoError(t, err)
		b.Enqueued([]Enqueue{{Queue: 1, Seq: seq, Pos: p}})
		if seq%16 == 0 {
			r.entries[seq] = p
			continue
		}
		b.Settled([]Settle{{Queue: 1, Seq: seq, Pos: p}})
	}
	for range 5 {
		b.keep()
	}
	require.Less(t, b.Stats().Segments, 10)
	require.Equal(t, int64(len(r.entries)), b.Stats().Messages)
	for seq, p := range r.entries {
		require.Equal(t, text(int(seq), 64), b.View(p))
		b.Release(p)
	}
	require.Zero(t, b.Stats().Messages)
	b.shutdown()
}

// Terms come along with a copy, and what amends them while the copy is made counts.
func TestTermsOutliveCompaction(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}, terms: map[uint64]Terms{}}
	var b *bench
	amend := func(seq uint64, terms Terms) {
		r.terms[seq] = terms
		b.Amended([]Amend{{Queue: 1, Seq: seq, Pos: r.entries[seq], Durable: true, Terms: terms}})
	}
	meanwhile := Terms{ExpiresAt: 9, Deliveries: 2}
	relocate := func(queue, seq uint64, old, now Pos) (Terms, bool) {
		terms, ok := r.relocate(queue, seq, old, now)
		if ok && old != now && seq == 2 {
			amend(1, meanwhile)
		}
		return terms, ok
	}
	b = newBench(t, Options{Relocate: relocate})
	p, err := b.Put(text(1, 64), true, 2)
	require.NoError(t, err)
	b.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}, {Queue: 1, Seq: 2, Pos: p, Durable: true}})
	r.entries[1], r.entries[2] = p, p
	amend(1, Terms{ExpiresAt: 5, Deliveries: 1})
	amend(2, Terms{ExpiresAt: 7, Deliveries: 3, Flags: 4})
	for b.active() < 6 {
		b.fill()
	}
	b.keep()
	require.NotEqual(t, p, r.entries[1])
	b.fill()
	b.keep()
	b.fill()
	b.keep()
	require.False(t, b.has(1), "the original is gone, and what amended it")
	copied := r.entries[1]
	require.Equal(t, []RecoveredEntry{
		{Seq: 1, Pos: copied, Terms: meanwhile}, {Seq: 2, Pos: copied, Terms: Terms{ExpiresAt: 7, Deliveries: 3, Flags: 4}},
	}, b.restart().Queues[0].Entries)
	b.shutdown()
}

// A message damaged on the disk must not be copied with a right checksum.
func TestCompactionRefusesDamage(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newBench(t, Options{Relocate: r.relocate})
	e := b.publish(1)
	r.entries[1] = e.Pos
	for b.active() < 6 {
		b.fill()
	}
	b.View(e.Pos).Body[0] ^= 1
	b.keep()
	require.ErrorContains(t, b.Err(), "damaged record")
	require.ErrorContains(t, <-b.Failed(), fileName(1))
	require.Error(t, b.Close())
}
