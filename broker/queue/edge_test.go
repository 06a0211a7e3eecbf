package queue

import (
	"math"
	"testing"
)

// A restart leaves the messages of one queue under their old identities.
func TestRestore(t *testing.T) {
	q := New(Options{MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1, Priorities: 2})
	var fx Effects
	far := uint64(1) << 33
	for _, s := range []Seq{makeSeq(0, 7), makeSeq(2, 3), makeSeq(0, 8), makeSeq(0, far)} {
		q.Restore(s, Message{Pos: s.number(), Flags: Durable | Redelivered}, 0)
	}
	for _, want := range []Seq{makeSeq(2, 3), makeSeq(0, 7), makeSeq(0, 8), makeSeq(0, far)} {
		d, ok := q.Take(1, &fx)
		if !ok || d.Seq != want || d.Pos != want.number() || !d.Redelivered || d.Flags&Durable == 0 {
			t.Fatalf("took %+v, want %v", d, want)
		}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, next := range []Seq{makeSeq(0, far+1), makeSeq(1, 1), makeSeq(2, 4)} {
		if s := q.Publish(Message{}, next.Priority()); s != next {
			t.Errorf("published as %v, want %v", s, next)
		}
	}
}

func TestRestoreOfAnotherQueuePanics(t *testing.T) {
	for _, s := range []Seq{makeSeq(0, 4), makeSeq(0, 5), makeSeq(1, 6), 0} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("restored %v", s)
				}
			}()
			q := New(unlimited)
			q.Restore(5, Message{}, 0)
			q.Restore(s, Message{}, 0)
		}()
	}
}

func TestUnknownSeqs(t *testing.T) {
	q := New(unlimited)
	var fx Effects
	q.Publish(Message{ExpiresAt: 5}, 0)
	for _, s := range []Seq{0, 2, 1 << pageShift, makeSeq(0, numberMask), makeSeq(1, 1), math.MaxUint64} {
		o, _ := q.Expire(9, s, 5, &fx)
		if o != Gone || q.Ack(s, &fx) || q.Requeue(9, s, true, &fx) || q.Track(s, 5) {
			t.Errorf("%v is known", s)
		}
	}
	if q.Len() != 1 || len(fx.Settled) != 0 {
		t.Errorf("%d messages left, %+v settled", q.Len(), fx.Settled)
	}
}

func TestDeliveryCountStops(t *testing.T) {
	q := New(unlimited)
	var fx Effects
	q.Publish(Message{}, 0)
	for range math.MaxUint16 + 2 {
		d, _ := q.Take(1, &fx)
		q.Requeue(1, d.Seq, true, &fx)
	}
	if d, _ := q.Take(1, &fx); d.Deliveries != math.MaxUint16 {
		t.Errorf("%d deliveries", d.Deliveries)
	}
}

func TestFlagsOfOthersAreKeptOut(t *testing.T) {
	q := New(unlimited)
	var fx Effects
	s := q.Publish(Message{Flags: math.MaxUint8}, 0)
	q.Track(s, 0)
	q.Purge(&fx)
	q.Publish(Message{Flags: math.MaxUint8}, 0)
	q.Purge(&fx)
	for i, x := range fx.Settled {
		if x.Flags != publicFlags || x.Tracked != (i == 0) {
			t.Errorf("%+v", x)
		}
	}
}

func TestEffectsGiveBackLargeBuffers(t *testing.T) {
	fx := Effects{Settled: make([]Settled, 1, maxKeptEffects)}
	if fx.Reset(); len(fx.Settled) != 0 || cap(fx.Settled) != maxKeptEffects {
		t.Errorf("%d of %d kept", len(fx.Settled), cap(fx.Settled))
	}
	fx.Settled = make([]Settled, maxKeptEffects+1)
	if fx.Reset(); cap(fx.Settled) != 0 {
		t.Errorf("%d kept", cap(fx.Settled))
	}
}

func TestNextBit(t *testing.T) {
	words := []uint64{1<<3 | 1<<5, 0, 1 << 63}
	for from, want := range map[uint]int{0: 3, 3: 3, 4: 5, 6: 191, 64: 191, 191: 191, 192: -1, 500: -1} {
		i, ok := nextBit(words, from)
		if ok != (want >= 0) || ok && int(i) != want {
			t.Errorf("from %d: %d, %v", from, i, ok)
		}
	}
	if _, ok := nextBit(words[:2], 6); ok {
		t.Error("found a bit in nothing")
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		makeSeq(0, 12).String(): "12",
		makeSeq(3, 12).String(): "p3/12",
		Rejected.String():       "rejected",
		NotDue.String():         "not due",
		Unacked.String():        "unacked",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The other tests lean on Check, so it has to notice what is wrong.
func TestCheckNotices(t *testing.T) {
	for name, damage := range map[string]func(q *Queue, l *priorityEntries, pg *page, c *chunk){
		"count of ready":         func(q *Queue, _ *priorityEntries, _ *page, _ *chunk) { q.readyCount++ },
		"bytes of unacked":       func(q *Queue, _ *priorityEntries, _ *page, _ *chunk) { q.unackedBytes-- },
		"mark of the priority":   func(q *Queue, _ *priorityEntries, _ *page, _ *chunk) { q.ready[0] = 0 },
		"count of the priority":  func(_ *Queue, l *priorityEntries, _ *page, _ *chunk) { l.ready-- },
		"head behind the ready":  func(_ *Queue, l *priorityEntries, _ *page, _ *chunk) { l.head = 3 },
		"next below a number":    func(_ *Queue, l *priorityEntries, _ *page, _ *chunk) { l.next = 2 },
		"directory not trimmed":  func(_ *Queue, l *priorityEntries, _ *page, _ *chunk) { l.dir = append([]*page{nil}, l.dir...) },
		"ready bit of a chunk":   func(_ *Queue, _ *priorityEntries, pg *page, _ *chunk) { pg.ready[0] ^= 1 },
		"count in a chunk":       func(_ *Queue, _ *priorityEntries, pg *page, _ *chunk) { pg.counts[0]-- },
		"count of chunks":        func(_ *Queue, _ *priorityEntries, pg *page, _ *chunk) { pg.used++ },
		"ready bit of an entry":  func(_ *Queue, _ *priorityEntries, _ *page, c *chunk) { c.ready[0] ^= 2 },
		"count of entries":       func(_ *Queue, _ *priorityEntries, _ *page, c *chunk) { c.live++ },
		"spare in use":           func(q *Queue, _ *priorityEntries, _ *page, c *chunk) { q.spares.putChunk(c) },
		"spare page in use":      func(q *Queue, _ *priorityEntries, pg *page, _ *chunk) { q.spares.putPage(pg) },
		"more spares than there": func(q *Queue, _ *priorityEntries, _ *page, _ *chunk) { q.spares.chunks = make([]*chunk, maxSpares+1) },
	} {
		q := New(unlimited)
		publish(q, 3)
		q.Take(1, &Effects{})
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		l := &q.byPriority[0]
		damage(q, l, l.dir[0], l.dir[0].chunks[0])
		if q.Check() == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}
