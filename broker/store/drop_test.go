package store

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// dropTest is a store on a crash disk whose maintainer works only on request.
type dropTest struct {
	t    *testing.T
	disk *crashDisk
	opts Options
	*Store
}

func newDropTest(t *testing.T, o Options) *dropTest {
	b := &dropTest{t: t, disk: newCrashDisk(), opts: o}
	b.open()
	return b
}

func (b *dropTest) open() *Recovery {
	b.t.Helper()
	t := tiny(SyncGroup)
	t.ahead, t.slack = 64*int64(t.segmentBytes), 0
	s, r, err := openOn(b.disk, t, &b.opts)
	require.NoError(b.t, err)
	s.maintainer.close()
	b.Store = s
	b.journal.spare.refill(100)
	return r
}

func (b *dropTest) maintain() { b.maintainer.round() }

func (b *dropTest) shutdown() {
	require.NoError(b.t, b.Close())
}

// restart cuts the power and opens the store again.
func (b *dropTest) restart() *Recovery {
	b.t.Helper()
	b.shutdown()
	b.disk = b.disk.afterCrash(rand.New(rand.NewPCG(1, 1)), 0)
	return b.open()
}

// publish puts a message and enters it into a queue.
func (b *dropTest) publish(seq uint64) Enqueue {
	b.t.Helper()
	p, err := b.Put(text(int(seq), 64), true, 1)
	require.NoError(b.t, err)
	e := Enqueue{Queue: 1, Seq: seq, Pos: p, Durable: true}
	b.Enqueued([]Enqueue{e})
	return e
}

func (b *dropTest) settle(e Enqueue) {
	b.Settled([]Settle{{Queue: e.Queue, Seq: e.Seq, Pos: e.Pos, Durable: true}})
}

// fill ends the active segment, with settled messages in it.
func (b *dropTest) fill() {
	b.t.Helper()
	for until := max(b.active(), 1) + 1; b.active() < until; {
		p, err := b.Put(text(0, 200), true, 1)
		require.NoError(b.t, err)
		b.Release(p)
	}
	commit(b.t, b.Store)
}

// active returns the number of the segment that is appended to.
func (b *dropTest) active() uint64 {
	b.journal.mu.Lock()
	defer b.journal.mu.Unlock()
	if b.journal.active == nil {
		return 0
	}
	return b.journal.active.number
}

func (b *dropTest) has(number uint64) bool { return b.journal.table.get(number) != nil }

func seqs(r *Recovery) (seqs []uint64) {
	for _, q := range r.Queues {
		for _, e := range q.Entries {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

func TestDeadSegmentsAreDropped(t *testing.T) {
	b := newDropTest(t, Options{})
	b.fill()
	b.fill()
	require.True(t, b.has(1))
	b.maintain()
	require.False(t, b.has(1))
	require.False(t, b.has(2))
	require.True(t, b.has(3))
	require.Nil(t, b.disk.names[fileName(1)])
	require.Empty(t, seqs(b.restart()))
	b.shutdown()
}

// A settlement must not be forgotten while the settled message is on disk.
func TestSettlementOutlivesItsSegment(t *testing.T) {
	b := newDropTest(t, Options{})
	stays, leaves := b.publish(1), b.publish(2)
	b.fill()
	b.settle(leaves) // in segment 2
	b.fill()
	b.maintain()
	require.True(t, b.has(1), "message 1 lives there")
	require.False(t, b.has(2), "its settlement was carried")
	require.Equal(t, []uint64{1}, seqs(b.restart()))
	require.Equal(t, text(1, 64), b.View(stays.Pos))
	b.shutdown()
}

// After a restart a queue gives out the numbers of settled messages again. A carried
// settlement belongs to the first use.
func TestCarriedSettlementIsOfItsTime(t *testing.T) {
	b := newDropTest(t, Options{})
	b.publish(1)
	leaves := b.publish(2)
	b.fill()
	b.settle(leaves)
	b.fill()
	require.Equal(t, []uint64{1}, seqs(b.restart()))
	again := b.publish(2)
	b.maintain()
	require.False(t, b.has(2))
	commit(t, b.Store)
	require.Equal(t, []uint64{1, 2}, seqs(b.restart()))
	require.Equal(t, text(2, 64), b.View(again.Pos))
	b.shutdown()
}

// A segment full of settlements waits for the messages that they refer to.
func TestSettlementsWaitForTheirMessages(t *testing.T) {
	b := newDropTest(t, Options{})
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
	b.maintain()
	b.maintain()
	require.True(t, b.has(first), "carrying it would free nothing")
	require.Len(t, seqs(b.restart()), live)
	b.shutdown()
}

// relocator is one queue whose messages the store moves.
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
	b := newDropTest(t, Options{Relocate: r.relocate})
	e := b.publish(1)
	b.Retain(e.Pos, 1) // somebody reads it for a long time
	r.entries[1] = e.Pos
	for b.active() < 6 {
		b.fill()
	}
	b.maintain() // drops 2 to 5 and evacuates 1
	moved := r.entries[1]
	require.NotEqual(t, e.Pos, moved)
	require.Equal(t, uint64(6), moved.segment())
	require.Equal(t, text(1, 64), b.View(moved))
	b.fill()
	delete(r.entries, 1)
	e.Pos = moved
	b.settle(e) // in 7
	b.fill()
	b.maintain()
	b.maintain()
	require.True(t, b.has(1), "it is being looked at")
	require.True(t, b.has(6), "the copy waits for 1")
	b.fill()
	b.maintain()
	require.Empty(t, seqs(b.restart()), "the original must not come back")
	b.maintain()
	b.maintain()
	require.False(t, b.has(1))
	require.False(t, b.has(6))
	b.shutdown()
}

// What takes a message's place does not wait for the original: beside one segment that stays, any number of them come and go.
func TestReplacedMessagesGo(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newDropTest(t, Options{Relocate: r.relocate})
	e := b.publish(1)
	for seq := uint64(2); b.active() < 2; seq++ { // the first segment stays more than half alive
		r.entries[seq] = b.publish(seq).Pos
	}
	all := len(r.entries)
	for n := range 60 {
		p, err := b.Put(text(1000+n, 64), true, 1)
		require.NoError(t, err)
		old := e.Pos
		e.Pos = p
		b.Replaced(e, Terms{Deliveries: uint16(n)}, old)
		b.fill()
		b.maintain()
	}
	existing := 0
	b.journal.table.each(func(*segment) bool { existing++; return true })
	require.Less(t, existing, 8)
	require.True(t, b.has(1))
	for range 2 {
		recovered := b.restart()
		require.Len(t, seqs(recovered), all+1)
		first := recovered.Queues[0].Entries[0]
		require.Equal(t, RecoveredEntry{Seq: 1, Pos: e.Pos, Terms: Terms{Deliveries: 59}}, first)
		require.Equal(t, text(1059, 64), b.View(first.Pos))
		b.maintain()
	}
	b.settle(e)
	commit(t, b.Store)
	require.Len(t, seqs(b.restart()), all, "the original must not come back")
	b.shutdown()
}
