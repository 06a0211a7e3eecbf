package store

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

var crashSeed = flag.Uint64("seed", 0, "run the crash test with this seed only")

// onlySome reports whether the tests that crash, or run out of something, at many places try only some of them: with -short, and where
// CRASH_POINTS is "some", as beside the race detector.
func onlySome() bool { return testing.Short() || os.Getenv("CRASH_POINTS") == "some" }

// tinyRoom is soon used up.
const tinyRoom = 2 << 10

// tiny makes everything happen within a few hundred small messages.
func tiny(mode SyncMode) tuning {
	t := (&Options{Sync: mode, SegmentBytes: 1 << 12}).tune(1 << 20)
	t.segmentBytes = pageAlign(1 << 12)
	t.reserve, t.ahead = 4*int64(t.segmentBytes), 2*int64(t.segmentBytes)
	t.slack, t.resident = int64(t.segmentBytes), 2*int64(t.segmentBytes)
	t.backlog, t.burst = 1<<16, 1<<11
	t.room = tinyRoom
	t.linger, t.announce, t.retry = 50*time.Microsecond, 100*time.Microsecond, time.Millisecond
	if t.lazy > 0 {
		t.lazy = 100 * time.Microsecond
	}
	return t
}

type place struct{ queue, seq uint64 }

// queuedMessage is what must be found of a queued message.
type queuedMessage struct {
	id    int // 0: its body is too short for an id
	terms Terms
}

// fact is one call that changed what must survive.
type fact struct {
	leave []place
	enter map[place]queuedMessage
	amend map[place]Terms
}

// world drives a store and knows, call by call, what a restart may find: the effect of all
// calls up to one that is not before the last confirmed one.
type world struct {
	t   *testing.T
	rng *rand.Rand

	mu        mutex // a queue lock for all queues
	pos       map[place]Pos
	terms     map[place]Terms
	base      map[place]queuedMessage // what the last recovery found
	facts     []fact
	confirmed int
	next      map[uint64]uint64 // seq, by queue
	ids       int
	volatile  map[place]int
	places    []place // includes all that are queued
	moved     int     // entries relocated by compaction
	mode      SyncMode
	disk      *crashDisk
	use       func(*Store) // what happens in one life
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), pos: map[place]Pos{},
		terms: map[place]Terms{}, base: map[place]queuedMessage{}, next: map[uint64]uint64{}, volatile: map[place]int{},
	}
	w.use = func(s *Store) { w.run(s, 1500) }
	return w
}

func (w *world) relocate(queue, seq uint64, old, now Pos) (Terms, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := place{queue, seq}
	if p, ok := w.pos[at]; !ok || p != old {
		return Terms{}, false
	}
	w.pos[at] = now
	if old != now {
		w.moved++
	}
	return w.terms[at], true
}

// Messages with numbers above largeIDs are larger: segments are full and dropped sooner.
const largeIDs = 1_000_000

func message(id int) Message {
	rng := rand.New(rand.NewPCG(uint64(id), 9))
	if id > largeIDs {
		return text(id, rng.IntN(2500))
	}
	return text(id, rng.IntN(600))
}

// number returns the next sequence number of a queue, like a queue that only knows what it
// contains.
func (w *world) number(queue uint64) uint64 {
	w.next[queue]++
	return w.next[queue]
}

func (w *world) enter(s *Store, queue uint64, p Pos, durable bool) Enqueue {
	e := Enqueue{Queue: queue, Seq: w.number(queue), Pos: p, ExpiresAt: deadline.Instant(w.ids), Durable: durable}
	e.EnqueuedAt = since(queue, e.Seq)
	w.places = append(w.places, place{queue, e.Seq})
	w.pos[place{queue, e.Seq}] = p
	w.terms[place{queue, e.Seq}] = Terms{ExpiresAt: e.ExpiresAt}
	return e
}

// since returns the enqueue time to record; only some queues record it.
func since(queue, seq uint64) deadline.Instant {
	if queue != 2 {
		return 0
	}
	return deadline.Instant(1_000_000 + seq)
}

func (w *world) publish(s *Store) {
	w.mu.Lock()
	w.ids++
	id := w.ids
	w.mu.Unlock()
	queues := 1 + w.rng.IntN(2)
	persistent := w.rng.IntN(4) > 0
	p, err := s.Put(message(id), persistent, queues)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := fact{enter: map[place]queuedMessage{}}
	var entries []Enqueue
	for range queues {
		queue := uint64(1 + w.rng.IntN(3))
		durable := w.rng.IntN(5) > 0
		e := w.enter(s, queue, p, durable)
		entries = append(entries, e)
		if durable && persistent {
			f.enter[place{queue, e.Seq}] = queuedMessage{id, Terms{ExpiresAt: e.ExpiresAt}}
		} else {
			w.volatile[place{queue, e.Seq}] = id
		}
	}
	w.facts = append(w.facts, f)
	s.Enqueued(entries)
}

// leaving returns the place that a message leaves next. Mostly that is the newest one: a few
// messages stay for long, and are copied again and again.
func (w *world) leaving() (place, bool) {
	for i := len(w.places) - 1; i >= 0 && w.rng.IntN(8) > 0; i-- {
		if _, ok := w.pos[w.places[i]]; ok {
			return w.places[i], true
		}
	}
	return w.any()
}

// any returns a random place, or false.
func (w *world) any() (place, bool) {
	if len(w.pos) == 0 {
		return place{}, false
	}
	for {
		n, last := w.rng.IntN(len(w.places)), len(w.places)-1
		at := w.places[n]
		if _, ok := w.pos[at]; ok {
			return at, true
		}
		w.places[n], w.places = w.places[last], w.places[:last]
	}
}

func (w *world) leave(at place) Settle {
	_, volatile := w.volatile[at]
	s := Settle{Queue: at.queue, Seq: at.seq, Pos: w.pos[at], Durable: !volatile}
	delete(w.pos, at)
	delete(w.terms, at)
	return s
}

// amend changes the terms of entries, as new deadlines or failed deliveries do.
func (w *world) amend(s *Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := fact{amend: map[place]Terms{}}
	var changes []Amend
	for range 1 << w.rng.IntN(5) {
		at, ok := w.any()
		if _, again := f.amend[at]; !ok || again {
			continue
		}
		terms := w.terms[at]
		terms.ExpiresAt = deadline.Instant(w.rng.Int64N(1 << 40))
		terms.Deliveries += uint16(w.rng.IntN(2))
		terms.Flags = uint8(w.rng.IntN(256))
		if terms.WaitsUntil = 0; terms.Deliveries > 0 && w.rng.IntN(2) == 0 {
			terms.WaitsUntil = deadline.Instant(1 + w.rng.Int64N(1<<40))
		}
		w.terms[at], f.amend[at] = terms, terms
		_, volatile := w.volatile[at]
		changes = append(changes, Amend{Queue: at.queue, Seq: at.seq, Pos: w.pos[at], Durable: !volatile, Terms: terms})
	}
	w.facts = append(w.facts, f)
	s.Amended(changes)
}

func (w *world) settle(s *Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.leaving()
	if !ok {
		return
	}
	settle := w.leave(at)
	delete(w.volatile, at)
	w.facts = append(w.facts, fact{leave: []place{at}})
	s.Settled([]Settle{settle})
}

func (w *world) move(s *Store) {
	w.mu.Lock()
	at, ok := w.leaving()
	if !ok {
		w.mu.Unlock()
		return
	}
	src := w.leave(at)
	delete(w.volatile, at)
	w.ids++
	id := w.ids
	w.mu.Unlock()
	p, err := s.PutMoved(message(id), true, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.facts = append(w.facts, fact{leave: []place{at}})
		s.Settled([]Settle{src})
		return
	}
	e := w.enter(s, uint64(1+w.rng.IntN(3)), p, true)
	w.facts = append(w.facts, fact{leave: []place{at}, enter: map[place]queuedMessage{{e.Queue, e.Seq}: {id, Terms{ExpiresAt: e.ExpiresAt}}}})
	s.Moved(src, []Enqueue{e})
}

// replace puts a copy with another content in a message's place.
func (w *world) replace(s *Store) {
	w.mu.Lock()
	at, ok := w.leaving()
	if !ok {
		w.mu.Unlock()
		return
	}
	old := w.pos[at]
	s.Retain(old, 1)
	w.ids++
	id := w.ids
	w.mu.Unlock()
	p, err := s.Put(message(id), old.Durable(), 1)
	s.Release(old)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pos[at] != old {
		s.Release(p)
		return
	}
	terms, f := w.terms[at], fact{}
	_, volatile := w.volatile[at]
	if volatile {
		w.volatile[at] = id
	} else {
		f.enter = map[place]queuedMessage{at: {id, terms}}
	}
	w.pos[at] = p
	w.facts = append(w.facts, f)
	s.Replaced(Enqueue{
		Queue: at.queue, Seq: at.seq, Pos: p, ExpiresAt: terms.ExpiresAt, Flags: terms.Flags, Durable: !volatile, EnqueuedAt: since(at.queue, at.seq),
	}, terms, old)
}

// transact puts messages into queues and takes others out, in one transaction.
func (w *world) transact(s *Store) {
	n := w.rng.IntN(6)
	var positions []Pos
	w.mu.Lock()
	first := w.ids + 1
	w.ids += n
	w.mu.Unlock()
	for i := range n {
		p, err := s.Put(message(first+i), true, 1)
		if err != nil {
			break
		}
		positions = append(positions, p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := fact{enter: map[place]queuedMessage{}}
	var settles []Settle
	for range w.rng.IntN(6) {
		if at, ok := w.leaving(); ok {
			settles = append(settles, w.leave(at))
			delete(w.volatile, at)
			f.leave = append(f.leave, at)
		}
	}
	var entries []Enqueue
	for i, p := range positions {
		e := w.enter(s, uint64(1+w.rng.IntN(3)), p, true)
		entries = append(entries, e)
		f.enter[place{e.Queue, e.Seq}] = queuedMessage{first + i, Terms{ExpiresAt: e.ExpiresAt}}
	}
	w.facts = append(w.facts, f)
	s.Transacted(entries, settles)
}

func (w *world) commitSoon(s *Store) { w.commit(s, false) }

func (w *world) commitNow(s *Store) { w.commit(s, true) }

func (w *world) commit(s *Store, wait bool) {
	w.mu.Lock()
	upTo := len(w.facts)
	w.mu.Unlock()
	done := make(chan struct{})
	s.Commit(func(err error) {
		if err == nil {
			w.mu.Lock()
			w.confirmed = max(w.confirmed, upTo)
			w.mu.Unlock()
		}
		close(done)
	})
	if wait {
		<-done
		resumed()
	}
}

// run makes n random calls, or fewer if the store fails. The number of messages grows and
// shrinks, and in each run other calls are frequent.
func (w *world) run(s *Store, n int) {
	calls := []func(*Store){w.publish, w.settle, w.settle, w.move, w.replace, w.transact, w.amend, w.amend, w.commitSoon, w.commitNow, w.check}
	var usual []func(*Store)
	for _, call := range calls {
		for range 1 << w.rng.IntN(7) {
			usual = append(usual, call)
		}
	}
	most, queued := 0, 0
	for i := range n {
		if i%8 == 0 {
			if s.Err() != nil {
				return
			}
			queued = w.count()
		}
		if i == 0 || w.rng.IntN(100) == 0 {
			most = 1 << w.rng.IntN(5)
		}
		switch {
		case queued > most && w.rng.IntN(2) == 0:
			w.settle(s)
		case queued < most && w.rng.IntN(4) == 0:
			w.publish(s)
		default:
			usual[w.rng.IntN(len(usual))](s)
		}
	}
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pos)
}

// check reads a few messages.
func (w *world) check(s *Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range 3 {
		if at, ok := w.any(); ok {
			s.View(w.pos[at])
		}
	}
}

// readLocked reads what a restart found, and continues from there.
func (w *world) readLocked(s *Store, r *Recovery) map[place]queuedMessage {
	w.pos, w.terms, w.places = map[place]Pos{}, map[place]Terms{}, nil
	w.next, w.volatile = map[uint64]uint64{}, map[place]int{}
	for _, q := range r.Queues {
		for _, e := range q.Entries {
			at := place{q.Queue, e.Seq}
			w.places = append(w.places, at)
			w.pos[at], w.terms[at] = e.Pos, e.Terms
			w.next[q.Queue] = max(w.next[q.Queue], e.Seq)
		}
	}
	return w.read(r.Queues, s.View)
}

// read reads recovered messages.
func (w *world) read(queues []RecoveredQueue, view func(Pos) Message) map[place]queuedMessage {
	found := map[place]queuedMessage{}
	for _, q := range queues {
		for _, e := range q.Entries {
			m := view(e.Pos)
			var id int
			if len(m.Body) >= 8 {
				fmt.Sscanf(string(m.Body[:8]), "%d", &id)
				require.Equal(w.t, message(id), m, "a wrong body")
			}
			found[place{q.Queue, e.Seq}] = queuedMessage{id, e.Terms}
			require.Equal(w.t, since(q.Queue, e.Seq), e.EnqueuedAt)
		}
	}
	return found
}

// recovered checks what a restart found, and continues from there.
func (w *world) recovered(s *Store, r *Recovery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.readLocked(s, r)
	w.explain(found)
	w.base, w.facts, w.confirmed = found, nil, 0
}

// explain checks that what was recovered is what a restart may find.
func (w *world) explain(found map[place]queuedMessage) {
	if !w.explained(func(state map[place]queuedMessage, _ int) bool { return sameMessages(state, found) }) {
		var nearest []string
		w.explained(func(state map[place]queuedMessage, calls int) bool {
			if d := differences(state, found); nearest == nil || len(d) < len(nearest) {
				nearest = append(d, fmt.Sprintf("after %d calls, of which the last %+v", calls, w.facts[max(calls-1, 0):calls]))
			}
			return false
		})
		w.t.Fatalf("no prefix of the %d calls explains what was found; %d were confirmed; nearest: %v", len(w.facts), w.confirmed, nearest)
	}
}

// afterCrash returns the disk as a restart may find it.
func (w *world) afterCrash() *crashDisk {
	keep := []float64{0, 0.5, 0.9, 1}[w.rng.IntN(4)]
	if keep < 1 && w.mode != SyncGroup {
		w.confirmed = 0
	}
	return w.disk.afterCrash(w.rng, keep)
}

// explained tries the states that a restart may find until fn accepts one.
func (w *world) explained(fn func(state map[place]queuedMessage, calls int) bool) bool {
	state := maps.Clone(w.base)
	for i := 0; ; i++ {
		if i >= w.confirmed && fn(state, i) {
			return true
		}
		if i == len(w.facts) {
			return false
		}
		w.facts[i].apply(state)
	}
}

func (f *fact) apply(state map[place]queuedMessage) {
	for _, at := range f.leave {
		delete(state, at)
	}
	maps.Copy(state, f.enter)
	for at, terms := range f.amend {
		if x, ok := state[at]; ok {
			state[at] = queuedMessage{x.id, terms}
		}
	}
}

// differences describes how a state differs from what was found.
func differences(state, found map[place]queuedMessage) (d []string) {
	for at, x := range state {
		if y, ok := found[at]; !ok {
			d = append(d, fmt.Sprintf("%v %+v is missing", at, x))
		} else if x.terms != y.terms || x.id != y.id {
			d = append(d, fmt.Sprintf("%v is %+v instead of %+v", at, y, x))
		}
	}
	for at, y := range found {
		if _, ok := state[at]; !ok {
			d = append(d, fmt.Sprintf("%v %+v should not be there", at, y))
		}
	}
	return d
}

// sameMessages compares places, ids and terms.
func sameMessages(a, b map[place]queuedMessage) bool {
	if len(a) != len(b) {
		return false
	}
	for at, x := range a {
		y, ok := b[at]
		if !ok || x.terms != y.terms || x.id != y.id && x.id != 0 && y.id != 0 {
			return false
		}
	}
	return true
}

// TestCrashes crashes at random operations of the disk, several times in a row. What was
// not synced is lost, kept, or kept in part.
func TestCrashes(t *testing.T) {
	seeds := uint64(300)
	if onlySome() {
		seeds = 50
	}
	first := uint64(1)
	if *crashSeed != 0 {
		first, seeds = *crashSeed, *crashSeed
	}
	for shard := range uint64(crashShards) {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel()
			var cut, moved, rounds int
			for seed := first + shard; seed <= seeds; seed += crashShards {
				c, m := newWorld(t, seed).lives(seed)
				cut, moved, rounds = cut+c, moved+m, rounds+4
			}
			t.Logf("%d lives, %d with a torn tail, %d entries relocated", rounds, cut, moved)
		})
	}
}

// crashShards run at the same time, as each waits for its store most of the time.
const crashShards = 4

// lives are four in a row on one disk.
func (w *world) lives(seed uint64) (cut, moved int) {
	w.disk = newCrashDisk()
	for range 4 {
		c, m := w.life(seed)
		cut, moved = cut+c, moved+m
		w.disk = w.afterCrash()
	}
	return cut, moved
}

// life opens the store, checks its contents, and uses it until it crashes.
func (w *world) life(seed uint64) (cut, moved int) {
	w.disk.crashAt = 1 + w.rng.IntN(1500)
	w.mode = []SyncMode{SyncGroup, SyncGroup, SyncGroup, SyncInterval, SyncNever}[w.rng.IntN(5)]
	w.pos = map[place]Pos{} // the queues are not restored yet
	s, r, err := openOn(w.disk, tiny(w.mode), &Options{Relocate: w.relocate})
	if err != nil {
		require.ErrorIs(w.t, err, errCrashed, "seed %d", seed)
		return 0, 0
	}
	defer s.Close()
	w.recovered(s, r)
	w.use(s)
	if r.CutBytes > 0 {
		cut = 1
	}
	w.mu.Lock() // compaction may still go on
	defer w.mu.Unlock()
	moved, w.moved = w.moved, 0
	return cut, moved
}
