package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompactionOfTheJournal(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newDropTest(t, Options{Relocate: r.relocate})
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
		b.maintain()
		commit(t, b.Store)
	}
	st := b.figures()
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
	b := newDropTest(t, Options{Relocate: r.relocate})
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
		b.maintain()
	}
	require.Less(t, b.Stats().Segments, 10)
	require.Equal(t, int64(len(r.entries)), b.figures().Messages)
	for seq, p := range r.entries {
		require.Equal(t, text(int(seq), 64), b.View(p))
		b.Release(p)
	}
	require.Zero(t, b.figures().Messages)
	b.shutdown()
}

// Terms move with a copy, and amendments made during the copying count.
func TestTermsOutliveCompaction(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}, terms: map[uint64]Terms{}}
	var b *dropTest
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
	b = newDropTest(t, Options{Relocate: relocate})
	p, err := b.Put(text(1, 64), true, 2)
	require.NoError(t, err)
	b.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}, {Queue: 1, Seq: 2, Pos: p, Durable: true}})
	r.entries[1], r.entries[2] = p, p
	amend(1, Terms{ExpiresAt: 5, Deliveries: 1})
	amend(2, Terms{ExpiresAt: 7, Deliveries: 3, Flags: 4})
	for b.active() < 6 {
		b.fill()
	}
	b.maintain()
	require.NotEqual(t, p, r.entries[1])
	b.fill()
	b.maintain()
	b.fill()
	b.maintain()
	require.False(t, b.has(1), "the original is gone, and what amended it")
	copied := r.entries[1]
	require.Equal(t, []RecoveredEntry{
		{Seq: 1, Pos: copied, Terms: meanwhile}, {Seq: 2, Pos: copied, Terms: Terms{ExpiresAt: 7, Deliveries: 3, Flags: 4}},
	}, b.restart().Queues[0].Entries)
	b.shutdown()
}

// Two amendments come between the copying of a message and the relocation of its entry: one in
// the copy's segment, one in the next, which is dropped when the original is gone.
func TestAmendedTwiceBeforeRelocation(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}, terms: map[uint64]Terms{}}
	var b *dropTest
	amend := func(terms Terms) {
		r.terms[1] = terms
		b.Amended([]Amend{{Queue: 1, Seq: 1, Pos: r.entries[1], Durable: true, Terms: terms}})
	}
	last := Terms{ExpiresAt: 9, Deliveries: 3}
	relocate := func(queue, seq uint64, old, now Pos) (Terms, bool) {
		if old != now && r.terms[1] != last { // others have the queue's lock first
			amend(Terms{ExpiresAt: 7, Deliveries: 2})
			b.fill()
			amend(last)
			b.fill()
		}
		return r.relocate(queue, seq, old, now)
	}
	b = newDropTest(t, Options{Relocate: relocate})
	original := b.publish(1).Pos
	r.entries[1] = original
	for b.active() < 6 {
		b.fill()
	}
	b.maintain()
	copied := r.entries[1]
	require.NotEqual(t, original, copied)
	for range 4 {
		b.fill()
		b.maintain()
	}
	require.False(t, b.has(original.segment()))
	require.False(t, b.has(copied.segment()+1), "nothing names the last amendment's segment")
	require.Equal(t, []RecoveredEntry{{Seq: 1, Pos: copied, Terms: last}}, b.restart().Queues[0].Entries)
	b.shutdown()
}

// A message that is damaged on disk must not be copied with a valid checksum.
func TestCompactionRefusesDamage(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newDropTest(t, Options{Relocate: r.relocate})
	e := b.publish(1)
	r.entries[1] = e.Pos
	for b.active() < 6 {
		b.fill()
	}
	b.View(e.Pos).Body[0] ^= 1
	b.maintain()
	require.ErrorContains(t, b.Err(), "damaged record")
	require.ErrorContains(t, <-b.Failed(), fileName(1))
	require.Error(t, b.Close())
}

// A message of its own size stays where it is, whatever was in its segment with it: a copy would free nothing.
func TestLargeMessagesAreNotMoved(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newDropTest(t, Options{Relocate: r.relocate})
	large := text(1, 4*b.memory.size)
	at := map[uint64]Pos{}
	for seq, durable := range map[uint64]bool{1: true, 2: false} {
		p, err := b.Put(large, durable, 2)
		require.NoError(t, err)
		b.Enqueued([]Enqueue{{Queue: 1, Seq: seq, Pos: p, Durable: durable}, {Queue: 2, Seq: seq + 10, Pos: p, Durable: durable}})
		r.entries[seq], at[seq] = p, p
		b.Settled([]Settle{{Queue: 2, Seq: seq + 10, Pos: p, Durable: durable}})
	}
	for range 8 {
		b.fill()
		p, err := b.Put(text(0, b.memory.size/2), false, 1)
		require.NoError(t, err)
		b.Release(p)
		b.maintain()
		commit(t, b.Store)
	}
	require.Equal(t, at, r.entries)
	for _, p := range at {
		require.Equal(t, large, b.View(p))
	}
	b.Settled([]Settle{{Queue: 1, Seq: 2, Pos: at[2]}})
	require.Len(t, seqs(b.restart()), 1)
	b.shutdown()
}
