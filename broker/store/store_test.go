package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"curfew/broker/deadline"
)

func openDisk(t testing.TB, o Options) (*Store, *Recovery) {
	t.Helper()
	s, r, err := Open(o)
	require.NoError(t, err)
	return s, r
}

// openTuned opens a store that moves everything beyond resident bytes to files.
func openTuned(t testing.TB, disk fileSystem, o Options, resident int64) *Store {
	t.Helper()
	tune := o.tune(1 << 28)
	tune.resident = resident
	s, _, err := openOn(disk, tune, &o)
	require.NoError(t, err)
	return s
}

// commit waits until everything is safe.
func commit(t testing.TB, s *Store) {
	t.Helper()
	done := make(chan error, 1)
	s.Commit(func(err error) { done <- err })
	require.NoError(t, <-done)
}

func TestDiskRoundTrip(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}
	s, r := openDisk(t, o)
	require.Empty(t, r.Queues)
	var entries []Enqueue
	for i := range 1000 {
		p, err := s.Put(text(i, 1000), true, 1)
		require.NoError(t, err)
		require.True(t, p.Durable())
		e := Enqueue{Queue: 7, Seq: uint64(i + 1), Pos: p, ExpiresAt: deadline.Instant(i), Flags: uint8(i), Durable: true}
		entries = append(entries, e)
		s.Enqueued(entries[i:])
	}
	commit(t, s)
	for i := range 500 {
		s.Settled([]Settle{{Queue: 7, Seq: uint64(i*2 + 1), Pos: entries[i*2].Pos, Durable: true}})
	}
	require.NoError(t, s.Close())
	for round := range 3 {
		s, r = openDisk(t, o)
		require.Len(t, r.Queues, 1, "round %d", round)
		require.Len(t, r.Queues[0].Entries, 500)
		for i, e := range r.Queues[0].Entries {
			want := entries[i*2+1]
			require.Equal(t, RecoveredEntry{Seq: want.Seq, Pos: want.Pos, Terms: Terms{ExpiresAt: want.ExpiresAt, Flags: want.Flags}}, e)
			require.Equal(t, text(i*2+1, 1000), s.View(e.Pos))
		}
		require.Zero(t, r.CutBytes)
		require.NoError(t, s.Close())
	}
}

func TestDirectoryIsLocked(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "made", "by", "open")}
	s, _ := openDisk(t, o)
	_, _, err := Open(o)
	require.ErrorContains(t, err, "in use")
	require.ErrorContains(t, Verify(o.Dir, &bytes.Buffer{}), "in use")
	require.NoError(t, s.Close())
	s, _ = openDisk(t, o)
	require.NoError(t, s.Close())
}

// In a small container less memory waits for the disk; publishers never wait for what the
// maintainer may leave in memory.
func TestWhatWaitsInMemoryIsBoundedByItsLimit(t *testing.T) {
	for _, c := range []struct{ limit, resident, overflow int64 }{
		{0, 32 * mib, 256 * mib}, {64 * mib, 8 * mib, 16 * mib}, {400 * mib, 32 * mib, 100 * mib}, {1 << 40, 32 * mib, 256 * mib},
	} {
		tune := (&Options{MemoryLimit: c.limit}).tune(1 << 40)
		require.Equal(t, []int64{c.resident, c.overflow}, []int64{tune.resident, tune.overflow}, "limit %d", c.limit)
		require.Greater(t, tune.overflow, tune.resident)
	}
}

// shelf is a queue as the broker would have it.
type shelf struct {
	mu      sync.Mutex
	id      uint64
	next    uint64
	entries map[uint64]shelved
}

type shelved struct {
	pos     Pos
	id      int
	durable bool
}

// Everything at the same time: publishers, consumers, dead-lettering, commits, compaction
// and paging.
func TestConcurrentUse(t *testing.T) {
	dir := t.TempDir()
	shelves := map[uint64]*shelf{}
	for id := uint64(1); id <= 3; id++ {
		shelves[id] = &shelf{id: id, entries: map[uint64]shelved{}}
	}
	var moved atomic.Int64
	o := Options{Dir: dir, SegmentBytes: 1 << 14, Relocate: func(queue, seq uint64, old, now Pos) (Terms, bool) {
		q := shelves[queue]
		q.mu.Lock()
		defer q.mu.Unlock()
		e, ok := q.entries[seq]
		if !ok || e.pos != old {
			return Terms{}, false
		}
		if old != now {
			moved.Add(1)
		}
		e.pos = now
		q.entries[seq] = e
		return Terms{}, true
	}}
	disk, err := openDir(dir)
	require.NoError(t, err)
	tune := o.tune(1 << 22)
	tune.resident, tune.slack = 1<<15, 1<<15
	s, _, err := openOn(disk, tune, &o)
	require.NoError(t, err)

	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() { useShelves(t, s, shelves, g) })
	}
	wg.Wait()
	want := map[place]int{}
	for id, q := range shelves {
		q.mu.Lock()
		for seq, e := range q.entries {
			require.Equal(t, text(e.id, len(s.View(e.pos).Body)), s.View(e.pos))
			if e.durable {
				want[place{id, seq}] = e.id
			}
		}
		q.mu.Unlock()
	}
	require.NoError(t, s.Close())
	t.Logf("%d messages left, %d relocated", len(want), moved.Load())

	for _, q := range shelves {
		clear(q.entries)
	}
	s, r := openDisk(t, o)
	found := 0
	for _, q := range r.Queues {
		for _, e := range q.Entries {
			found++
			id, ok := want[place{q.Queue, e.Seq}]
			require.True(t, ok)
			m := s.View(e.Pos)
			require.Equal(t, text(id, len(m.Body)), m)
		}
	}
	require.Len(t, want, found)
	require.NoError(t, s.Close())
	require.NoError(t, Verify(dir, &bytes.Buffer{}))
}

// useShelves publishes to, consumes from and moves between the queues.
func useShelves(t *testing.T, s *Store, shelves map[uint64]*shelf, g int) {
	rng := rand.New(rand.NewPCG(uint64(g), 2))
	putter := s.NewPutter()
	var batch []shelved
	for i := range 3000 {
		if len(batch) == 0 {
			durable := rng.IntN(2) > 0
			for n := range 1 + rng.IntN(30) {
				id := g*1_000_000 + i*100 + n
				m := text(id, 8+rng.IntN(800))
				p, err := putter.Put(&m, durable, 1)
				if err != nil {
					t.Error(err)
					return
				}
				batch = append(batch, shelved{p, id, durable})
			}
			putter.End()
		}
		q := shelves[uint64(1+rng.IntN(2))]
		q.mu.Lock()
		q.add(s, batch[0].pos, batch[0].id, batch[0].durable)
		e, seq, ok := q.takeAny(s, rng)
		q.mu.Unlock()
		batch = batch[1:]
		if !ok {
			continue
		}
		settle := Settle{Queue: q.id, Seq: seq, Pos: e.pos, Durable: e.durable}
		m := s.View(e.pos)
		if !bytes.Equal(m.Body, text(e.id, len(m.Body)).Body) {
			t.Errorf("message %d reads as another", e.id)
			return
		}
		if rng.IntN(4) == 0 {
			moveTo(t, s, shelves[3], settle, e)
		} else {
			s.Settled([]Settle{settle})
		}
		if rng.IntN(20) == 0 {
			s.Commit(func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	for _, e := range batch {
		s.Release(e.pos)
	}
}

func (q *shelf) add(s *Store, p Pos, id int, durable bool) {
	q.next++
	q.entries[q.next] = shelved{p, id, durable}
	s.Enqueued([]Enqueue{{Queue: q.id, Seq: q.next, Pos: p, Durable: durable}})
}

// takeAny takes mostly young entries and leaves some to grow old.
func (q *shelf) takeAny(_ *Store, rng *rand.Rand) (shelved, uint64, bool) {
	seq := q.next - uint64(rng.IntN(5))
	e, ok := q.entries[seq]
	delete(q.entries, seq)
	return e, seq, ok
}

func moveTo(t *testing.T, s *Store, q *shelf, src Settle, e shelved) {
	m := s.View(src.Pos)
	p, err := s.PutMoved(m, e.durable, 1)
	if err != nil {
		t.Error(err)
		return
	}
	q.mu.Lock()
	q.next++
	seq := q.next
	q.entries[seq] = shelved{p, e.id, e.durable}
	q.mu.Unlock()
	s.Moved(src, []Enqueue{{Queue: q.id, Seq: seq, Pos: p, Durable: e.durable}})
}

func TestProgress(t *testing.T) {
	disk, _ := usedDisk(t, 12)
	var last, total int64
	r := newRecovery(disk, zap.NewNop(), func(done, of int64) {
		require.Greater(t, done, last)
		last, total = done, of
	})
	r.every = 0
	defer r.unmap()
	_, err := r.read()
	require.NoError(t, err)
	require.NotZero(t, total)
	require.Equal(t, total, last)
}

// countedDisk counts the files made for transient messages, and those that are still open.
type countedDisk struct {
	fileSystem
	made, open int
}

func (d *countedDisk) Create(name string, size int64) (file, error) {
	f, err := d.fileSystem.Create(name, size)
	if err != nil || name != spillTemp {
		return f, err
	}
	d.made++
	d.open++
	return &countedFile{f, d}, nil
}

type countedFile struct {
	file
	disk *countedDisk
}

func (f *countedFile) Close() error {
	f.disk.open--
	return f.file.Close()
}

// Dropped files of the journal free their space at once: nobody might wake the maintainer
// for that.
func TestWhatIsDroppedIsUnmapped(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentBytes: 1 << 16}
	disk, err := openDir(o.Dir)
	require.NoError(t, err)
	s := openTuned(t, disk, o, 1<<17)
	var settled []Settle
	for i := range 2000 {
		p, err := s.Put(text(i, 1000), true, 1)
		require.NoError(t, err)
		s.Enqueued([]Enqueue{{Queue: 1, Seq: uint64(i + 1), Pos: p, Durable: true}})
		settled = append(settled, Settle{Queue: 1, Seq: uint64(i + 1), Pos: p, Durable: true})
	}
	commit(t, s)
	require.Eventually(t, func() bool { return s.figures().ResidentBytes <= s.maintainer.opts.resident }, waitFor, tick)
	s.maintainer.close()
	s.Settled(settled)
	commit(t, s)
	require.Eventually(t, func() bool { s.maintainer.round(); return s.Stats().Segments <= 2 }, waitFor, tick)
	require.Empty(t, s.memory.unwanted)
	require.NoError(t, s.Close())
}

// failingDisk fails at one step of taking transient messages.
type failingDisk struct {
	fileSystem
	at string
}

func (d *failingDisk) fail(at string) error {
	if d.at == at {
		return unix.ENOSPC
	}
	return nil
}

func (d *failingDisk) Create(name string, size int64) (file, error) {
	f, err := d.fileSystem.Create(name, size)
	if name != spillTemp {
		return f, err
	}
	return &failingFile{f, d}, errors.Join(err, d.fail("create"))
}

func (d *failingDisk) Remove(name string) error {
	return errors.Join(d.fail("remove"), d.fileSystem.Remove(name))
}

type failingFile struct {
	file
	disk *failingDisk
}

func (f *failingFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.disk.fail("write"); err != nil {
		return 0, err
	}
	return f.file.WriteAt(b, at)
}

func (f *failingFile) MapOver(mem []byte, writable bool) error {
	if err := f.disk.fail("map"); err != nil {
		return err
	}
	return f.file.MapOver(mem, writable)
}

// Large messages are written beside each other, and beside whoever commits: what is on disk is whole.
func TestLargeMessagesAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	s, _, err := Open(Options{Dir: dir, SegmentBytes: 1 << 20})
	require.NoError(t, err)
	var all sync.WaitGroup
	for queue := range 4 {
		all.Go(func() {
			for i := range 12 {
				m := text(100*queue+i, largeRecord*(1+i))
				for _, durable := range []bool{true, false} {
					p, err := s.Put(m, durable, 1)
					if !assert.NoError(t, err) {
						return
					}
					assert.Equal(t, m, s.View(p))
					if !durable {
						s.Release(p)
						continue
					}
					s.Enqueued([]Enqueue{{Queue: uint64(queue + 1), Seq: uint64(i + 1), Pos: p, Durable: true}})
					commit(t, s)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, s.Close())
	s, found, err := Open(Options{Dir: dir, SegmentBytes: 1 << 20})
	require.NoError(t, err)
	require.Len(t, found.Queues, 4)
	for _, q := range found.Queues {
		require.Len(t, q.Entries, 12)
		for _, e := range q.Entries {
			require.Equal(t, text(100*int(q.Queue-1)+int(e.Seq-1), largeRecord*int(e.Seq)), s.View(e.Pos))
		}
	}
	require.NoError(t, s.Close())
}

// Err returns the error that ended the journal, or nil while the journal works.
func (s *Store) Err() error {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.journal.err
}
