package queue

import (
	"math"
	"slices"
	"testing"

	"curfew/broker/deadline"
)

func TestStories(t *testing.T) {
	for name, script := range map[string]string{
		"first in, first out": `
			publish a b c
			take a
			take b
			holds a* b* c
			ack b           => b acked
			ack b -> no
			take c
			take nothing
			ack a           => a acked
			reject c        => c rejected
			holds`,

		"what is ready cannot be settled by a consumer": `
			publish a
			ack a -> no
			reject a -> no
			requeue a -> no
			holds a`,

		"requeue goes back to the old place, in whatever order": `
			publish a b c d
			take a
			take b
			take c
			requeue c
			requeue a
			holds a b* c d
			take a redelivered
			take c redelivered
			take d
			requeue b
			take b redelivered`,

		"a deadline ends a message wherever it stands": `
			publish a
			publish b ttl=100
			publish c
			advance 99
			expire b -> not due until 1100
			advance 1
			expire b -> expired   => b expired
			expire b -> gone
			holds a c`,

		"nothing expired is delivered": `
			publish a ttl=10
			publish b ttl=20
			publish c
			publish d ttl=20
			advance 20
			take c              => a expired, b expired
			take nothing        => d expired`,

		"only the deadline it was given ends a message": `
			publish a ttl=50
			publish b
			advance 100
			expire a deadline=1049 -> gone
			expire a deadline=0 -> gone
			expire b deadline=0 -> gone
			expire never deadline=1050 -> gone
			expire a -> expired   => a expired`,

		"unacked is shielded until it comes back": `
			publish a b ttl=50
			take a
			take b
			expire a -> not due until 1050
			advance 50
			expire a -> held
			expire b -> held
			take nothing
			ack b               => b acked
			requeue a           => a expired
			expire a -> gone`,

		"requeue keeps the deadline": `
			publish a ttl=50
			take a
			advance 49
			requeue a
			expire a -> not due until 1050
			advance 1
			take nothing        => a expired`,

		"another deadline": `
			publish a b c ttl=50
			publish d
			track a
			reschedule a in=100 -> rescheduled tracked
			expire a deadline=1050 -> gone
			track a deadline=1050 -> no
			reschedule b        -> rescheduled
			reschedule d in=20  -> rescheduled
			reschedule c deadline=1051 in=9 -> gone
			holds a b c d
			advance 20
			expire d -> expired   => d expired
			advance 1000
			expire b -> gone
			take b              => a expired
			take nothing        => c expired`,

		"a deadline that is made to come": `
			publish a b ttl=50
			track a
			reschedule a in=0 -> expired tracked  => a expired tracked
			reschedule b in=1 -> rescheduled
			take b
			reschedule b in=0 -> held
			expire b -> held
			take nothing
			requeue b           => b expired`,

		"time to live zero, held, with a new deadline": `
			publish a ttl=0
			take a
			reschedule a in=10 -> rescheduled
			requeue a
			advance 9
			take a redelivered
			requeue a
			advance 1
			take nothing        => a expired`,

		"time to live zero: now or never": `
			publish a b ttl=0
			take a
			advance 1
			take nothing        => b expired
			ack a               => a acked`,

		"time to live zero has one try, and can be ended within its millisecond": `
			publish a b ttl=0
			take a
			requeue a           => a expired
			expire b -> expired   => b expired`,

		"higher priorities first, each in order": `
			options priorities=5
			publish low p=1
			publish high1 high2 p=5
			publish none
			publish above p=9
			holds high1 high2 above low none
			take high1
			take high2
			take above
			take low
			requeue high2
			take high2 redelivered
			take none
			take nothing`,

		"without priorities a priority means nothing": `
			publish a
			publish b p=9
			take a
			take b`,

		"a late priority expires behind the others": `
			options priorities=1
			publish low p=0 ttl=10
			publish high p=1
			advance 10
			take high
			expire low -> expired => low expired`,

		"the length limit drops from the head and counts only what is ready": `
			options max=2
			publish a b c
			take a
			trim
			publish d
			trim                => b maxlen
			holds a* c d
			requeue a
			trim                => a maxlen
			holds c d`,

		"the byte limit": `
			options bytes=10
			publish a b bytes=4
			trim
			publish c bytes=9
			trim                => a maxlen, b maxlen
			publish d bytes=11
			trim                => c maxlen, d maxlen
			holds`,

		"a limit of zero holds nothing": `
			options max=0
			publish a b
			trim                => a maxlen, b maxlen`,

		"the head that is dropped is the one of the highest priority": `
			options priorities=2 max=2
			publish low p=0
			publish high p=2
			publish mid p=1
			trim                => high maxlen
			holds mid low`,

		"a rejecting queue is full, and drops nothing": `
			options max=2 bytes=100 overflow=reject
			publish a bytes=60
			full 40 -> false
			full 41 -> true
			publish b
			full 0 -> true
			take a
			full 99 -> false
			full 100 -> true
			publish c d e
			trim
			holds a* b c d e`,

		"a queue that drops its head is never full": `
			options max=1
			publish a b
			full 1 -> false`,

		"limits of a policy act on what is there": `
			publish a b c
			options max=1
			trim                => a maxlen, b maxlen`,

		"failed deliveries are counted and limited": `
			options limit=2
			publish a
			take a
			fail a
			take a redelivered failed=1
			requeue a
			take a redelivered failed=1
			fail a
			take a redelivered failed=2
			fail a              => a delivery_limit`,

		"a limit of zero allows no failure": `
			options limit=0
			publish a b
			take a
			take b
			requeue a
			fail b              => b delivery_limit`,

		"a lower limit catches the next one to come back": `
			options limit=3
			publish a b
			take a
			fail a
			take a redelivered failed=1
			take b
			options limit=0
			requeue a           => a delivery_limit
			requeue b
			holds b`,

		"expiry comes before the delivery limit": `
			options limit=0
			publish a ttl=5
			take a
			advance 5
			fail a              => a expired`,

		"purge leaves what consumers hold": `
			options priorities=1
			publish a b c
			publish d p=1
			take d
			take a
			purge -> 2          => b purged, c purged
			holds d* a*
			purge -> 0
			requeue a
			holds d* a`,

		"drain takes everything, in the order of delivery": `
			options priorities=1
			publish a b c
			publish d p=1
			take d
			take a
			drain -> 4          => d purged, a purged, b purged, c purged
			ack a -> no
			requeue d -> no
			publish e
			take e`,

		"a tracked message tells however it leaves": `
			options limit=0
			publish a b c d e f ttl=10
			track a
			track b
			track c
			track d
			track e
			take a
			ack a               => a acked tracked
			take b
			reject b            => b rejected tracked
			take c
			fail c              => c delivery_limit tracked
			take d
			requeue d
			advance 10
			expire d -> expired   => d expired tracked
			purge -> 2          => e purged tracked, f purged`,

		"what is gone or has another deadline cannot be tracked": `
			publish a ttl=10
			track a deadline=1011 -> no
			take a
			track a
			ack a               => a acked tracked
			track a deadline=1010 -> no`,

		"a shrunk queue goes on": `
			publish a b
			take a
			shrink
			take b
			ack a               => a acked
			ack b               => b acked
			shrink
			publish c
			holds c
			take c`,
	} {
		t.Run(name, func(t *testing.T) { tell(t, script) })
	}
}

func TestHoldTakesFromTheMiddle(t *testing.T) {
	q := New(Options{MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1, Priorities: 2})
	var fx Effects
	a, b := q.Publish(Message{Bytes: 1}, 0), q.Publish(Message{Bytes: 2, ExpiresAt: 50}, 0)
	high := q.Publish(Message{Bytes: 4}, 2)
	if q.Hold(b, 0) || q.Hold(b+1, 50) {
		t.Error("held what is not there")
	}
	if !q.Hold(b, 50) || q.Hold(b, 50) {
		t.Error("a message is held once")
	}
	if q.Ready.Count != 2 || q.Unacked.Count != 1 || q.Unacked.Bytes != 2 {
		t.Error("counts", q.Ready.Count, q.Unacked.Count, q.Unacked.Bytes)
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
	if !q.Requeue(49, b, false, &fx) || !q.Hold(a, 0) || !q.Settle(a, Acked, &fx) || len(fx.Settled) != 1 {
		t.Error("a held one is settled or requeued as others are")
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
	if tails := q.Tails(); len(tails) != 3 || tails[0] != b || tails[1] != 0 || tails[2] != high {
		t.Error("tails", tails)
	}
}

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

// TestSkip: what is published goes on above a number that is kept elsewhere, but for one that cannot be.
func TestSkip(t *testing.T) {
	for _, c := range []struct{ restored, skipped, next uint64 }{
		{0, 0, 1}, {0, 5, 6}, {0, 1 << 40, 1<<40 + 1}, {0, 1 << 50, 1}, {7, 5, 8}, {7, 7, 8}, {7, 200, 201}, {7, 40_000, 40_001}, {7, 1 << 33, 1<<33 + 1}, {7, 1 << 40, 8},
	} {
		q := New(Options{MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1})
		var fx Effects
		if c.restored > 0 {
			q.Restore(makeSeq(0, c.restored), Message{}, 0)
		}
		Skip(q, makeSeq(0, c.skipped))
		Skip(q, makeSeq(1, 900)) // it has no such priority
		check := func() {
			if err := q.Check(); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
		}
		check()
		for i := range uint64(3) {
			if s := q.Publish(Message{}, 0); s != makeSeq(0, c.next+i) {
				t.Errorf("%+v: published as %v", c, s)
			}
			check()
		}
		for d, ok := q.Take(1, &fx); ok; d, ok = q.Take(1, &fx) {
			q.Settle(d.Seq, Acked, &fx)
			check()
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
		if q.Expire(9, s, 5, &fx).Outcome != deadline.Gone || q.Settle(s, Acked, &fx) || q.Requeue(9, s, true, &fx) || q.Track(s, 5) {
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
	purge(q, &fx)
	q.Publish(Message{Flags: math.MaxUint8}, 0)
	purge(q, &fx)
	for i, x := range fx.Settled {
		if x.Flags != publicFlags || x.Tracked != (i == 0) {
			t.Errorf("%+v", x)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		makeSeq(0, 12).String(): "12",
		makeSeq(3, 12).String(): "p3/12",
		Rejected.String():       "rejected",
		Unacked.String():        "unacked",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTwoLevels: high messages go first, two for each normal one; within a level the order is that of publishing, and an expired message takes no turn.
func TestTwoLevels(t *testing.T) {
	q := New(Options{MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1, Priorities: 1, TwoLevels: true})
	take := func() (taken []uint64) {
		var fx Effects
		for {
			d, ok := q.Take(100, &fx)
			if !ok {
				return taken
			}
			taken = append(taken, d.Message.Pos)
		}
	}
	for i, priority := range []uint8{0, 1, 4, 3, 5, 9, 255, 6, 5, 7} {
		q.Publish(Message{Pos: uint64(i)}, priority)
	}
	q.Publish(Message{Pos: 99, ExpiresAt: 50}, 9)
	want := []uint64{4, 5, 0, 6, 7, 1, 8, 9, 2, 3}
	if got := take(); !slices.Equal(got, want) {
		t.Errorf("taken %v, want %v", got, want)
	}
	q.Publish(Message{Pos: 20}, 2)
	q.Publish(Message{Pos: 21}, 2)
	if got := take(); !slices.Equal(got, []uint64{20, 21}) {
		t.Errorf("normal ones alone: %v", got)
	}
}
