package store

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

func openDisk(t testing.TB, o Options) (*Store, *Recovery) {
	t.Helper()
	s, r, err := Open(o)
	require.NoError(t, err)
	return s, r
}

// openTuned opens a store that moves to files what is more than resident bytes.
func openTuned(t testing.TB, disk fileSystem, o Options, resident int64) *Store {
	t.Helper()
	tune := o.tune(1 << 28)
	tune.resident = resident
	s, _, err := openOn(disk, tune, &o)
	require.NoError(t, err)
	return s
}

// commit waits until all is safe.
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
		e := Enqueue{Queue: 7, Seq: uint64(i + 1), Pos: p, ExpiresAt: int64(i), Flags: uint8(i), Durable: true}
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

// In a small container less waits in memory for the disk; publishers never wait for what the keeper leaves there.
func TestWhatWaitsInMemoryIsBoundedByItsLimit(t *testing.T) {
	for _, c := range []struct{ limit, resident, overflow int64 }{
		{0, 32 * mib, 256 * mib}, {64 * mib, 8 * mib, 16 * mib}, {400 * mib, 32 * mib, 100 * mib}, {1 << 40, 32 * mib, 256 * mib},
	} {
		tune := (&Options{MemoryLimit: c.limit}).tune(1 << 40)
		require.Equal(t, []int64{c.resident, c.overflow}, []int64{tune.resident, tune.overflow}, "limit %d", c.limit)
		require.Greater(t, tune.overflow, tune.resident)
	}
}

// Old segments of both logs are moved to files, under readers' eyes.
func TestPagingIsNotNoticed(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, SegmentBytes: 1 << 16}
	disk, err := openDir(dir)
	require.NoError(t, err)
	s := openTuned(t, disk, o, 1<<17)
	var positions []Pos
	for i := range 2000 {
		p, err := s.Put(text(i, 1000), i%2 == 0, 0)
		require.NoError(t, err)
		positions = append(positions, p)
		if i%100 == 0 {
			for i, p := range positions {
				require.Equal(t, text(i, 1000), s.View(p))
			}
		}
	}
	require.Eventually(t, func() bool { return s.Stats().ResidentBytes <= 2<<17 }, waitFor, tick)
	for i, p := range positions {
		require.Equal(t, text(i, 1000), s.View(p))
		s.Release(p)
	}
	require.Zero(t, s.Stats().Messages)
	_, err = os.Stat(filepath.Join(dir, spillTemp))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, s.Close())
}

// Whoever releases the last message of a segment that is paged does not wait for its file to go.
func TestKeeperUnmapsWhatIsPaged(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, SegmentBytes: 1 << 16}
	disk, err := openDir(dir)
	require.NoError(t, err)
	s := openTuned(t, disk, o, 1<<17)
	s.keeper.close()
	var positions []Pos
	for i := range 500 {
		p, err := s.Put(text(i, 1000), false, 1)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	s.keeper.round()
	for _, p := range positions {
		s.Release(p)
	}
	require.Greater(t, len(s.memory.unwanted), 3)
	s.keeper.round()
	require.Empty(t, s.memory.unwanted)
	require.NoError(t, s.Close())
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

// Everything at once: publishers, consumers, dead-lettering, commits, compaction
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

// takeAny takes most entries young and leaves some to grow old.
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

func TestInspectAndVerify(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}
	s, _ := openDisk(t, o)
	for i := range 5 {
		p, err := s.Put(text(i, 100), true, 1)
		require.NoError(t, err)
		s.Enqueued([]Enqueue{{Queue: 42, Seq: uint64(i + 10), Pos: p, Durable: true}})
	}
	defineNow(t, s, def("a", "1"), def("b", "2"))
	require.NoError(t, s.Close())
	var out bytes.Buffer
	require.NoError(t, Inspect(o.Dir, &out))
	require.Regexp(t, `(?m)^0000000001.journal +\d+ +5  open$`, out.String())
	require.Regexp(t, `(?m)^0000000002.journal +262144 +-  spare$`, out.String())
	require.Regexp(t, `(?m)^definitions +\d+ +2  2$`, out.String())
	require.Regexp(t, `(?m)^42 +5 +10 +14$`, out.String())
	out.Reset()
	require.NoError(t, Verify(o.Dir, &out))
	require.Regexp(t, `^1 segments, 262144 bytes read, 5 messages in queues, 2 definitions: ok\n$`, out.String())

	for name, at := range map[string]int{definitionsName: 50, fileName(1): 300} {
		path := filepath.Join(o.Dir, name)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		b := slices.Clone(whole)
		b[at] ^= 1
		require.NoError(t, os.WriteFile(path, b, 0o600))
		for _, look := range []func(string, io.Writer) error{Inspect, Verify} {
			var corrupt *CorruptError
			require.ErrorAs(t, look(o.Dir, &out), &corrupt)
			require.Equal(t, name, corrupt.File)
		}
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	require.Error(t, Verify(filepath.Join(o.Dir, "missing"), &out))
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

// What goes through a long queue of transient messages uses the same places on disk again and again, and they are given
// up with the last of it. Messages of a size of their own have files of their own.
func TestPlacesOnDiskAreUsedAgain(t *testing.T) {
	dir := t.TempDir()
	real, err := openDir(dir)
	require.NoError(t, err)
	disk, o := &countedDisk{fileSystem: real}, Options{Dir: dir, SegmentBytes: 1 << 14}
	s := openTuned(t, disk, o, 1<<15)
	s.keeper.close()
	size := func(i int) int {
		if i%500 == 0 {
			return 1 << 15
		}
		return 1000
	}
	const queued, all = 1000, 10_000 // some 65 segments, 650 in all
	var positions []Pos
	release := func(i int) {
		require.Equal(t, text(i, size(i)), s.View(positions[i]), "message %d", i)
		s.Release(positions[i])
	}
	for i := range all {
		p, err := s.Put(text(i, size(i)), false, 1)
		require.NoError(t, err)
		if positions = append(positions, p); i >= queued {
			release(i - queued)
		}
		if i%50 == 0 {
			s.keeper.round()
			require.LessOrEqual(t, disk.open, 2, "message %d", i)
		}
	}
	require.LessOrEqual(t, disk.made, 2+all/500)
	for i := all - queued; i < all; i++ {
		release(i)
	}
	s.keeper.round()
	require.Zero(t, disk.open)
	require.NoError(t, s.Close())
}

// What is left here and there of many transient messages does not hold the disk of all of them, and can be read while it
// moves. Messages of a size of their own keep no descriptor.
func TestFewPlacesOnDiskAreFree(t *testing.T) {
	dir := t.TempDir()
	real, err := openDir(dir)
	require.NoError(t, err)
	disk, o := &countedDisk{fileSystem: real}, Options{Dir: dir, SegmentBytes: 1 << 14}
	s := openTuned(t, disk, o, 1<<14)
	s.keeper.close()
	var positions []Pos
	for i := range 16 * 500 {
		size := 900
		if i%100 == 0 {
			size = 1 << 15
		}
		p, err := s.Put(text(i, size), false, 1)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	s.keeper.round()
	require.InDelta(t, 500/spillPlaces, disk.open, 2)
	left := map[int]Message{}
	for i, p := range positions {
		if p.segment()%16 == 3 {
			left[i] = s.View(p)
		} else {
			s.Release(p)
		}
	}
	s.keeper.round()
	require.Len(t, s.keeper.spilled.files, 1)
	require.Equal(t, 1, disk.open)
	for i, m := range left {
		require.Equal(t, text(i, len(m.Body)), m, "by who looked before")
		require.Equal(t, m, s.View(positions[i]))
		s.Release(positions[i])
	}
	s.keeper.round()
	require.Zero(t, disk.open)
	require.NoError(t, s.Close())
}

// Files of the journal that are dropped give their space back at once: nobody may wake the keeper for that.
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
	require.Eventually(t, func() bool { return s.Stats().ResidentBytes <= s.keeper.opts.resident }, waitFor, tick)
	s.keeper.close()
	s.Settled(settled)
	commit(t, s)
	require.Eventually(t, func() bool { s.keeper.round(); return s.Stats().Segments <= 2 }, waitFor, tick)
	require.Empty(t, s.memory.unwanted)
	require.NoError(t, s.Close())
}

// A disk that fails in the middle leaves transient messages as they are, and takes them when it can again.
func TestSpillingFails(t *testing.T) {
	disk := &failingDisk{fileSystem: newCrashDisk()}
	tune := tiny(SyncGroup)
	s, _, err := openOn(disk, tune, &Options{})
	require.NoError(t, err)
	s.keeper.close()
	var positions []Pos
	for i := range 200 {
		p, err := s.Put(text(i, 500), false, 1)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	for _, at := range []string{"remove", "write", "map", "allocate"} {
		disk.at = at
		was := s.Stats().ResidentBytes
		s.keeper.round()
		require.Greater(t, s.Stats().ResidentBytes, tune.resident, at)
		require.LessOrEqual(t, s.Stats().ResidentBytes, was)
		for _, f := range s.keeper.spilled.files {
			require.NotZero(t, f.used, "%s: a file nothing is in", at)
		}
	}
	disk.at = ""
	s.keeper.round()
	require.LessOrEqual(t, s.Stats().ResidentBytes, tune.resident)
	for i, p := range positions {
		require.Equal(t, text(i, 500), s.View(p))
		s.Release(p)
	}
	s.keeper.round()
	require.Empty(t, s.keeper.spilled.files)
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
	if name == spillTemp {
		f = &failingFile{f, d}
	}
	return f, err
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

func (f *failingFile) MapOver(mem []byte, offset int64, writable bool) error {
	if err := f.disk.fail("map"); err != nil {
		return err
	}
	return f.file.MapOver(mem, offset, writable)
}

func (f *failingFile) Allocate(size int64) error {
	if err := f.disk.fail("allocate"); err != nil {
		return err
	}
	return f.file.Allocate(size)
}
