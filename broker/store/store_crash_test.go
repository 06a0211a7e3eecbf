package store

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

var crashSeed = flag.Uint64("seed", 0, "run the crash test with this seed only")

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

	mu        sync.Mutex // a queue lock for all queues
	pos       map[place]Pos
	terms     map[place]Terms
	base      map[place]queuedMessage // what the last recovery found
	facts     []fact
	confirmed int
	next      map[uint64]uint64 // seq, by queue
	ids       int
	volatile  map[place]int
	moved     int // entries relocated by compaction
	mode      SyncMode
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), pos: map[place]Pos{},
		terms: map[place]Terms{}, base: map[place]queuedMessage{}, next: map[uint64]uint64{}, volatile: map[place]int{},
	}
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

func message(id int) Message {
	rng := rand.New(rand.NewPCG(uint64(id), 9))
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

// any returns a random place, or false.
func (w *world) any() (place, bool) {
	if len(w.pos) == 0 {
		return place{}, false
	}
	n := w.rng.IntN(len(w.pos))
	for at := range w.pos {
		if n == 0 {
			return at, true
		}
		n--
	}
	panic("unreachable")
}

func (w *world) leave(at place) Settle {
	_, volatile := w.volatile[at]
	s := Settle{Queue: at.queue, Seq: at.seq, Pos: w.pos[at], Durable: !volatile}
	delete(w.pos, at)
	delete(w.terms, at)
	return s
}

// amend changes the terms of an entry, as a new deadline or a failed delivery does.
func (w *world) amend(s *Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.any()
	if !ok {
		return
	}
	terms := w.terms[at]
	terms.ExpiresAt = deadline.Instant(w.rng.Int64N(1 << 40))
	terms.Deliveries += uint16(w.rng.IntN(2))
	terms.Flags = uint8(w.rng.IntN(256))
	w.terms[at] = terms
	_, volatile := w.volatile[at]
	w.facts = append(w.facts, fact{amend: map[place]Terms{at: terms}})
	s.Amended([]Amend{{Queue: at.queue, Seq: at.seq, Pos: w.pos[at], Durable: !volatile, Terms: terms}})
}

func (w *world) settle(s *Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.any()
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
	at, ok := w.any()
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
		if at, ok := w.any(); ok {
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
	}
}

// run makes n random calls, or fewer if the store fails. The number of messages grows and
// shrinks.
func (w *world) run(s *Store, n int) {
	swell := true
	for i := 0; i < n && s.Err() == nil; i++ {
		if w.rng.IntN(100) == 0 {
			swell = !swell
		}
		switch r := w.rng.IntN(10); {
		case r < 4 && swell || r < 2:
			w.publish(s)
		case r < 5:
			w.settle(s)
		case r < 6 && i%4 == 0:
			w.transact(s)
		case r < 6:
			w.settle(s)
		case r < 7 && i%2 == 0:
			w.move(s)
		case r < 7:
			w.amend(s)
		case r < 9:
			w.commit(s, r == 8)
		default:
			w.check(s)
		}
	}
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

// readLocked reads what a restart found.
func (w *world) readLocked(s *Store, r *Recovery) map[place]queuedMessage {
	found := map[place]queuedMessage{}
	w.pos, w.terms = map[place]Pos{}, map[place]Terms{}
	w.next, w.volatile = map[uint64]uint64{}, map[place]int{}
	for _, q := range r.Queues {
		for _, e := range q.Entries {
			at := place{q.Queue, e.Seq}
			m := s.View(e.Pos)
			var id int
			if len(m.Body) >= 8 {
				fmt.Sscanf(string(m.Body[:8]), "%d", &id)
				require.Equal(w.t, message(id), m, "a wrong body")
			}
			found[at] = queuedMessage{id, e.Terms}
			require.Equal(w.t, since(q.Queue, e.Seq), q.EnqueuedAt(&e))
			w.pos[at], w.terms[at] = e.Pos, e.Terms
			w.next[q.Queue] = max(w.next[q.Queue], e.Seq)
		}
	}
	return found
}

// recovered checks what a restart found, and continues from there.
func (w *world) recovered(s *Store, r *Recovery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.readLocked(s, r)
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
	w.base, w.facts, w.confirmed = found, nil, 0
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
	if testing.Short() {
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
				w := newWorld(t, seed)
				disk := newCrashDisk()
				for range 4 {
					c, m := w.life(seed, disk)
					cut, moved, rounds = cut+c, moved+m, rounds+1
					keep := []float64{0, 0.5, 0.9, 1}[w.rng.IntN(4)]
					if keep < 1 && w.mode != SyncGroup {
						w.confirmed = 0
					}
					disk = disk.afterCrash(w.rng, keep)
				}
			}
			t.Logf("%d lives, %d with a torn tail, %d entries relocated", rounds, cut, moved)
		})
	}
}

// crashShards run at the same time, as each waits for its store most of the time.
const crashShards = 4

// life opens the store, checks its contents, and uses it until it crashes.
func (w *world) life(seed uint64, disk *crashDisk) (cut, moved int) {
	disk.crashAt = 1 + w.rng.IntN(1500)
	w.mode = []SyncMode{SyncGroup, SyncGroup, SyncGroup, SyncInterval, SyncNever}[w.rng.IntN(5)]
	w.pos = map[place]Pos{} // the queues are not restored yet
	s, r, err := openOn(disk, tiny(w.mode), &Options{Relocate: w.relocate})
	if err != nil {
		require.ErrorIs(w.t, err, errCrashed, "seed %d", seed)
		return 0, 0
	}
	w.recovered(s, r)
	w.run(s, 1500)
	s.Close()
	if r.CutBytes > 0 {
		cut = 1
	}
	moved, w.moved = w.moved, 0
	return cut, moved
}
