package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A start on a full disk leaves the next segment's file as an empty one. It must still be there
// after the store has tried in vain to give it its space.
func TestStartsOnFullDisk(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	p, err := s.Put(text(1, 100), true, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	commit(t, s)
	require.NoError(t, s.Close())
	disk.dropSpares()
	disk.space = disk.used()
	for range 4 {
		s, r, err := reopen(disk)
		require.NoError(t, err)
		require.Equal(t, []uint64{1}, seqs(r))
		require.Eventually(t, s.journal.spare.isFull, waitFor, tick)
		_, err = s.Put(text(2, 100), true, 1)
		require.ErrorIs(t, err, ErrFull)
		if err := s.CloseClean(nil); err != nil {
			require.True(t, errors.Is(err, ErrFull) || noSpace(err), err)
		}
	}
}

// shortage is something that a disk runs out of.
type shortage struct {
	name  string
	begin func(*crashDisk)
}

var shortages = []shortage{
	{"space", func(d *crashDisk) { d.space = d.used() }},
	{"names", func(d *crashDisk) { d.maxNames = max(1, len(d.names)) }},
	{"descriptors", func(d *crashDisk) { d.noFiles = true }},
	{"everything", func(d *crashDisk) { d.refusing, d.noFiles = true, true }},
}

// relief ends a shortage.
func (d *crashDisk) relief() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt, d.space, d.maxNames, d.refusing, d.noFiles = 0, 0, 0, false, false
}

// dropSpares removes the spare files.
func (d *crashDisk) dropSpares() {
	for name, n := range maps.Clone(d.names) {
		if _, segment := fileNumber(name); segment && n.end() == 0 {
			d.change(func(names map[string]*inode) { delete(names, name) })
		}
	}
}

// stops are the ways in which a store ends. Each returns the disk that the next start finds.
var stops = map[string]func(w *world, s *Store, disk *crashDisk) *crashDisk{
	"clean stop": func(_ *world, s *Store, disk *crashDisk) *crashDisk {
		_ = s.CloseClean(nil) // it may fail for lack of space
		return disk
	},
	"failed stop": func(w *world, s *Store, disk *crashDisk) *crashDisk {
		disk.mu.Lock()
		before := disk.refusing
		disk.refusing = true
		disk.mu.Unlock()
		require.Error(w.t, s.CloseClean(nil))
		disk.refusing = before
		return disk
	},
	"kill -9":       func(w *world, s *Store, disk *crashDisk) *crashDisk { return crash(w, s, disk, 1) },
	"power failure": func(w *world, s *Store, disk *crashDisk) *crashDisk { return crash(w, s, disk, 0) },
}

func crash(w *world, s *Store, disk *crashDisk, keep float64) *crashDisk {
	disk.mu.Lock()
	disk.crashed = true
	disk.mu.Unlock()
	_ = s.Close()
	return disk.afterCrash(w.rng, keep)
}

// TestShortages lets the disk run out of each thing at each place where that can happen, ends
// the store in each way, and starts it on the full disk or with room, twice in a row. It always
// opens, what was confirmed is there, and consuming makes room.
func TestShortages(t *testing.T) {
	disk := newCrashDisk()
	newShortLife(t, 1, disk).end(stops["clean stop"])
	places := disk.places
	require.Greater(t, places, 20)
	step := 1
	if onlySome() {
		step = 5
	}
	for _, short := range shortages {
		for stop := range stops {
			t.Run(short.name+", "+stop, func(t *testing.T) {
				t.Parallel()
				for _, room := range []bool{false, true} {
					for at := 1; at <= places; at += step {
						outlive(t, short, stop, room, at)
					}
				}
			})
		}
	}
}

func outlive(t *testing.T, short shortage, stop string, room bool, at int) {
	disk := newCrashDisk()
	disk.failAt, disk.fail = at, short.begin
	l := newShortLife(t, uint64(at), disk)
	defer func() {
		if t.Failed() {
			t.Logf("out of %s at %d, then %s; room at the start: %t", short.name, at, stop, room)
		}
	}()
	for range 2 {
		disk = l.end(stops[stop])
		disk.failAt, disk.noFiles = 0, false // of the former process
		if room {
			disk.relief()
		}
		l.start(disk)
		l.use(20)
	}
	l.consume()
	l.end(stops[stop])
}

// shortLife is the use of a store whose disk may be full.
type shortLife struct {
	*world
	disk   *crashDisk
	s      *Store // nil: it could not begin
	opened bool   // at least once
}

func newShortLife(t *testing.T, seed uint64, disk *crashDisk) *shortLife {
	l := &shortLife{world: newWorld(t, seed)}
	l.start(disk)
	l.use(100)
	return l
}

func (l *shortLife) start(disk *crashDisk) {
	l.disk = disk
	l.mu.Lock()
	l.pos = map[place]Pos{}
	l.mu.Unlock()
	s, r, err := openOn(disk, tiny(SyncGroup), &Options{Relocate: l.relocate})
	if err != nil {
		require.True(l.t, noSpace(err), err)
		require.False(l.t, l.opened, "what has been opened opens again: %v", err)
		return
	}
	l.s, l.opened = s, true
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.readLocked(s, r)
	require.Empty(l.t, l.implausible(found))
	l.base, l.facts, l.confirmed = found, nil, 0
}

func (l *shortLife) end(how func(*world, *Store, *crashDisk) *crashDisk) *crashDisk {
	if l.s == nil {
		return l.disk
	}
	s := l.s
	l.s = nil
	return how(l.world, s, l.disk)
}

// use makes calls of all kinds. It does not wait for long, since nothing may be confirmed.
func (l *shortLife) use(n int) {
	for i := 0; i < n && l.s != nil && l.s.Err() == nil; i++ {
		switch l.rng.IntN(8) {
		case 0:
			l.settle(l.s)
		case 1:
			l.move(l.s)
		case 2:
			l.amend(l.s)
		case 3:
			l.transact(l.s)
		case 4:
			l.s.Define(def("key", string(make([]byte, l.rng.IntN(tinyRoom)+1))))
			_ = l.s.SyncDefinitions()
		default:
			l.publish(l.s)
		}
		l.commitSoon()
	}
}

// commitSoon waits for a commit unless the store waits for space.
func (l *shortLife) commitSoon() {
	l.commit(l.s, false)
	for l.s.Err() == nil && l.s.figures().PendingCommits > 0 && l.s.figures().SpareBytes >= 0 && !l.s.journal.spare.isFull() {
		runtime.Gosched()
	}
}

func (l *shortLife) queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pos)
}

// consume settles all messages one by one. Then there is room again.
func (l *shortLife) consume() {
	if l.s == nil {
		return
	}
	for l.queued() > 0 {
		l.settle(l.s)
		l.commit(l.s, false)
	}
	least := 12 * int64(l.s.memory.size) // of the reserve, what is made ahead, and definitions
	if d := l.disk; d.refusing || d.space > 0 && d.space < least || d.maxNames > 0 && d.maxNames < 12 {
		d.relief()
	}
	done := make(chan error, 1)
	l.s.Commit(func(err error) { done <- err })
	require.NoError(l.t, <-done)
	require.Eventually(l.t, func() bool {
		p, err := l.s.Put(text(1, 100), true, 1)
		if err == nil {
			l.s.Release(p)
		}
		return err == nil
	}, waitFor, tick)
}

// TestReserveGone: something else has taken the space of the spare files while the store was
// stopped, so not even a settlement can be written. Consuming makes room all the same, whenever
// the machine crashes meanwhile.
func TestReserveGone(t *testing.T) {
	full := newCrashDisk()
	l := newShortLife(t, 3, full)
	for range 150 {
		l.publish(l.s)
	}
	l.world.commit(l.s, true)
	base := l.world
	l.end(stops["clean stop"])
	full.dropSpares()
	full = full.afterCrash(l.rng, 1)
	full.space = full.used()
	emptied, step := 0, 1
	if onlySome() {
		step = 5
	}
	at := 0
	for ; ; at += step {
		disk := full.afterCrash(l.rng, 1)
		l := &shortLife{world: newWorld(t, uint64(at))}
		l.base, l.facts, l.confirmed = base.base, base.facts, base.confirmed
		l.start(disk)
		disk.mu.Lock()
		disk.ops, disk.crashAt = 0, at
		disk.mu.Unlock()
		for l.queued() > 0 {
			l.settle(l.s)
			l.commit(l.s, false)
		}
		done := make(chan error, 1)
		l.s.Commit(func(err error) { done <- err })
		<-done
		disk.mu.Lock()
		emptied += disk.emptied
		disk.mu.Unlock()
		crashed := l.s.Err() != nil
		l.start(l.end(stops["power failure"]))
		l.consume()
		l.end(stops["clean stop"])
		if at > 0 && !crashed {
			break
		}
	}
	t.Logf("%d files emptied, up to operation %d", emptied, at)
	require.Positive(t, emptied)
}

// TestMovesWaitForSpace: dead letters whose moves wait in memory for space on a full disk do not keep consuming from making some. Whenever
// the machine crashes meanwhile, each of them is in one of the two queues.
func TestMovesWaitForSpace(t *testing.T) {
	step := 3
	if onlySome() {
		step = 20
	}
	at := 0
	for ; ; at += step {
		disk := newCrashDisk()
		letters, crashed := moveOnFullDisk(t, disk, at)
		disk = disk.afterCrash(rand.New(rand.NewPCG(1, uint64(at))), 0.5)
		var found map[string]int
		for range 2 { // the disk may still be full when the first of them ends
			s, r, err := reopen(disk)
			require.NoError(t, err)
			found = map[string]int{}
			for _, q := range r.Queues {
				for i := range q.Entries {
					found[string(s.View(q.Entries[i].Pos).Body)]++
				}
			}
			for _, body := range letters {
				require.Equal(t, 1, found[body], "crash at operation %d", at)
			}
			if err := s.Close(); err != nil {
				require.ErrorIs(t, err, ErrFull)
			}
		}
		if at > 0 && !crashed {
			require.Len(t, found, len(letters))
			break
		}
	}
	t.Logf("up to operation %d", at)
}

// moveOnFullDisk fills the disk, uses up the reserve, then moves some messages and consumes all others. It returns the bodies of the first. The
// machine crashes at an operation of the disk; 0: never.
func moveOnFullDisk(t *testing.T, disk *crashDisk, crashAt int) (letters []string, crashed bool) {
	disk.space = 60 << 12
	s, _, err := reopen(disk)
	require.NoError(t, err)
	var held []Enqueue
	for seq := uint64(1); ; seq++ {
		p, err := s.Put(text(int(seq), 500), true, 1)
		if err != nil {
			require.ErrorIs(t, err, ErrFull)
			break
		}
		held = append(held, Enqueue{Queue: 1, Seq: seq, Pos: p, Durable: true})
		s.Enqueued(held[len(held)-1:])
	}
	const moves = 5
	moved, rest := held[len(held)-moves:], held[:len(held)-moves]
	var copies [moves]Pos
	for i, e := range moved {
		m := s.View(e.Pos)
		letters = append(letters, string(m.Body))
		copies[i], err = s.PutMoved(m, true, 1)
		require.NoError(t, err)
	}
	commit(t, s)
	disk.mu.Lock()
	disk.space = disk.used()
	disk.ops, disk.crashAt = 0, crashAt
	disk.mu.Unlock()
	for n := uint64(0); s.figures().SpareBytes >= 0 && s.Err() == nil; n++ {
		s.Retain(rest[0].Pos, 1)
		s.Settled([]Settle{{Queue: 1, Seq: 1000 + 2*n, Pos: rest[0].Pos, Durable: true}})
	}
	for i, e := range moved {
		s.Moved(Settle{Queue: 1, Seq: e.Seq, Pos: e.Pos, Durable: true}, []Enqueue{{Queue: 2, Seq: uint64(i + 1), Pos: copies[i], Durable: true}})
	}
	for _, e := range rest {
		s.Settled([]Settle{{Queue: 1, Seq: e.Seq, Pos: e.Pos, Durable: true}})
	}
	done := make(chan error, 1)
	s.Commit(func(err error) { done <- err })
	select {
	case err := <-done:
		crashed = err != nil
	case <-time.After(waitFor):
		require.Fail(t, "consuming makes no room")
	}
	if !crashed {
		require.Eventually(t, func() bool { return !s.journal.spare.isFull() || s.Err() != nil }, waitFor, tick)
	}
	_ = s.Close() // it may have crashed
	return letters, crashed
}

// A dead segment is not emptied while it is needed, nor while something that enters a queue waits
// to be written.
func TestWhatMustNotBeEmptied(t *testing.T) {
	b := newDropTest(t, Options{})
	stays, leaves := b.publish(1), b.publish(2)
	b.fill()
	b.settle(leaves) // in segment 2, which is dead
	b.fill()
	b.journal.mu.Lock()
	b.journal.spare.full = ErrFull
	b.journal.spare.owed += 1 << 30
	b.journal.mu.Unlock()
	emptied := func() int {
		b.maintainer.emptyDead(nil)
		return b.disk.emptied
	}
	require.Zero(t, emptied(), "segment 2 says that message 2 has left")
	b.settle(stays)
	b.Moved(Settle{Queue: 1, Seq: 9, Pos: b.retained(), Durable: true}, []Enqueue{{Queue: 2, Seq: 1, Pos: b.retained(), Durable: true}})
	require.Zero(t, emptied(), "a crash would lose the move, but not what was handed in before it")
	commit(t, b.Store)
	require.Equal(t, 2, emptied(), "the messages that segment 2 is about are gone")
	require.Equal(t, 2, emptied(), "once")
	b.maintainer.journal.spare.full = nil
	require.Len(t, b.restart().Queues, 1)
	b.shutdown()
}

// retained puts a message and returns its position.
func (b *dropTest) retained() Pos {
	b.journal.mu.Lock()
	owed := b.journal.spare.owed
	full := b.journal.spare.full
	b.journal.spare.owed, b.journal.spare.full = 0, nil
	b.journal.mu.Unlock()
	p, err := b.Put(text(3, 64), true, 1)
	require.NoError(b.t, err)
	b.journal.mu.Lock()
	b.journal.spare.owed, b.journal.spare.full = owed, full
	b.journal.mu.Unlock()
	return p
}

// implausible describes what a restart found, or did not find, without a reason. What was
// confirmed is certain. Of later calls any may count, but a move as a whole.
func (w *world) implausible(found map[place]queuedMessage) (wrong []string) {
	certain := maps.Clone(w.base)
	for i := range w.facts[:w.confirmed] {
		w.facts[i].apply(certain)
	}
	later := w.facts[w.confirmed:]
	left, entered, amended := map[place]bool{}, map[place]int{}, map[place]bool{}
	for i := range later {
		for _, at := range later[i].leave {
			left[at] = true
		}
		for at, m := range later[i].enter {
			entered[at] = m.id
		}
		for at := range later[i].amend {
			amended[at] = true
		}
	}
	for at, m := range certain {
		f, ok := found[at]
		switch {
		case !ok && !left[at]:
			wrong = append(wrong, fmt.Sprintf("%v %+v is missing", at, m))
		case ok && (f.id != m.id && f.id != 0 && m.id != 0 || f.terms != m.terms && !amended[at]):
			wrong = append(wrong, fmt.Sprintf("%v is %+v instead of %+v", at, f, m))
		}
	}
	for at, m := range found {
		if _, ok := certain[at]; ok {
			continue
		}
		if id, ok := entered[at]; !ok || id != m.id && m.id != 0 {
			wrong = append(wrong, fmt.Sprintf("%v %+v should not be there", at, m))
		}
	}
	for i := range later {
		for _, at := range later[i].leave {
			_, was := certain[at]
			if _, is := found[at]; is || !was {
				continue
			}
			for to := range later[i].enter {
				if _, is := found[to]; !is && !left[to] {
					wrong = append(wrong, fmt.Sprintf("%v left for %v and is in neither", at, to))
				}
			}
		}
	}
	return wrong
}
