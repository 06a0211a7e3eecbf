package queue

import (
	"slices"

	"curfew/broker/deadline"
)

// failer is what testing.T and rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// machine does the same to a queue and to the model and fails on the first
// difference: in an answer, in the effects, in what is queued, in the counts,
// or in the queue's own invariants.
type machine struct {
	t     failer
	q     *Queue
	m     *model
	fx    Effects
	now   deadline.Instant
	known []Seq     // every seq there ever was
	swept []Settled // what Sweep has to settle, in order
	left  []Settled // what Take has let go in full steps
}

func newMachine(t failer, o Options) *machine {
	return &machine{t: t, q: New(o), m: newModel(o), now: 1_000_000}
}

// some is a seq that was given once, or if there is none yet, one that was not.
func (k *machine) some(i int) Seq {
	if len(k.known) == 0 {
		return Seq(i)
	}
	return k.known[i%len(k.known)]
}

// held is a message some consumer has, if there is one.
func (k *machine) held(i int) Seq {
	if held := k.allHeld(); len(held) > 0 {
		return held[i%len(held)]
	}
	return k.some(i)
}

func (k *machine) allHeld() (seqs []Seq) {
	for _, x := range k.m.in(Unacked) {
		seqs = append(seqs, x.seq)
	}
	return seqs
}

func (k *machine) deadline(s Seq) deadline.Instant {
	if x := k.m.msgs[s]; x != nil {
		return x.ExpiresAt
	}
	return k.now
}

func (k *machine) message(ttl int64, bytes uint32) Message {
	m := Message{Pos: uint64(len(k.known)) + 7, Bytes: bytes}
	switch {
	case ttl == 0:
		m.ExpiresAt, m.Flags = k.now, Immediate
	case ttl > 0:
		m.ExpiresAt, m.Flags = k.now+deadline.Instant(ttl), Durable
	}
	return m
}

// waiting is a message that waits for another try, if there is one.
func (k *machine) waiting(i int) Seq {
	if all := k.m.in(Waiting); len(all) > 0 {
		return all[i%len(all)].seq
	}
	return k.some(i)
}

// restore leaves a hole of that many numbers before the message.
func (k *machine) restore(priority uint8, hole uint64, ttl int64) {
	p := min(priority, k.m.opts.Priorities)
	s := makeSeq(p, k.m.next[p]+1+hole)
	m := k.message(ttl, 3)
	k.q.Restore(s, m, uint16(hole%3))
	k.m.restore(s, m, uint16(hole%3))
	k.known = append(k.known, s)
	k.check("restore")
}

func (k *machine) publish(count int, priority uint8, ttl int64, bytes uint32) {
	for range count {
		m := k.message(ttl, bytes)
		s := k.q.Publish(m, priority)
		k.same("publish", s, k.m.publish(m, priority))
		k.known = append(k.known, s)
	}
	k.check("publish")
}

func (k *machine) take(count int) {
	for range count {
		got, ok := k.q.Take(k.now, &k.fx)
		for !ok && k.fx.Full() {
			k.left = append(k.left, k.fx.Settled...)
			k.fx.Reset()
			got, ok = k.q.Take(k.now, &k.fx)
		}
		want, wantOK := k.m.take(k.now)
		k.same("take", got, want)
		k.same("take", ok, wantOK)
	}
	k.check("take")
}

func (k *machine) ack(seqs ...Seq) {
	for _, s := range seqs {
		k.same("ack", k.q.Settle(s, Acked, &k.fx), k.m.settleUnacked(s, Acked))
	}
	k.check("ack")
}

func (k *machine) reject(s Seq) {
	k.same("reject", k.q.Settle(s, Rejected, &k.fx), k.m.settleUnacked(s, Rejected))
	k.check("reject")
}

func (k *machine) requeue(failed bool, seqs ...Seq) {
	for _, s := range seqs {
		k.same("requeue", k.q.Requeue(k.now, s, failed, &k.fx), k.m.requeue(k.now, s, failed))
	}
	k.check("requeue")
}

func (k *machine) giveBack(counted, failed bool, seqs ...Seq) {
	for _, s := range seqs {
		k.same("return", k.q.Return(k.now, k.now, s, counted, failed, &k.fx), k.m.returned(k.now, s, counted, failed))
		x := k.m.msgs[s]
		if x != nil && x.state == Waiting {
			k.same("return: waits", k.q.WaitsUntil(s), x.until)
		} else {
			k.same("return: waits", k.q.WaitsUntil(s), deadline.Instant(0))
		}
	}
	k.check("return")
}

// wake asks for few at a time.
func (k *machine) wake() {
	want := k.m.wake(k.now)
	next := k.q.Wake(k.now, 3, &k.fx)
	for next != 0 && next <= k.now {
		next = k.q.Wake(k.now, 3, &k.fx)
	}
	if next > want || (next == 0) != (want == 0) { // a stale entry may be asked for
		k.t.Fatalf("wake: the next is at %v, want %v", next, want)
	}
	k.check("wake")
}

func (k *machine) wakeNow(s Seq, deadline deadline.Instant) {
	k.same("wake now", k.q.WakeNow(k.now, s, deadline, &k.fx), k.m.wakeNow(k.now, s, deadline))
	k.check("wake now")
}

func (k *machine) remove(s Seq, deadline deadline.Instant) {
	k.same("remove", k.q.Remove(s, deadline, &k.fx), k.m.remove(s, deadline))
	k.check("remove")
}

func (k *machine) expire(s Seq, deadline deadline.Instant) {
	k.same("expire", k.q.Expire(k.now, s, deadline, &k.fx), k.m.expire(k.now, s, deadline))
	k.check("expire")
}

func (k *machine) reschedule(s Seq, deadline, next deadline.Instant) {
	got, was := k.q.Reschedule(k.now, s, deadline, next, &k.fx)
	want, wanted := k.m.reschedule(k.now, s, deadline, next)
	k.same("reschedule", got, want)
	k.same("reschedule: tracked", was, wanted)
	m, failed, ok := k.q.Find(s)
	x := k.m.msgs[s]
	k.same("find", ok, x != nil)
	if ok {
		k.same("find", m, x.Message)
		k.same("find", failed, x.failed)
	}
	k.check("reschedule")
}

func (k *machine) track(s Seq, deadline deadline.Instant) {
	k.same("track", k.q.Track(s, deadline), k.m.track(s, deadline))
	k.check("track")
}

func (k *machine) setOptions(o Options) {
	k.q.SetOptions(o)
	o.Priorities = k.m.opts.Priorities
	k.m.opts = o
	k.check("options")
}

func (k *machine) trim() {
	k.same("full", k.q.opts.Overflow != DropHead && k.q.Exceeds(1, 5), k.m.full(5))
	for k.q.Trim(&k.fx) {
	}
	k.m.trim()
	k.check("trim")
}

func (k *machine) purge() {
	for k.q.Sweeping() {
		k.sweep()
	}
	k.same("purge", k.q.Purge(), k.m.purge(false))
	k.leaveToSweep()
	k.check("purge")
}

// leaveToSweep takes what the model has just let go for what Sweep has to settle.
func (k *machine) leaveToSweep() {
	k.swept = append(k.swept, k.m.left...)
	k.m.left = k.m.left[:0]
}

func (k *machine) sweep() {
	k.sweepOf(k.q)
	k.check("sweep")
}

func (k *machine) sweepOf(q *Queue) {
	q.Sweep(&k.fx)
	n := min(len(k.fx.Settled), len(k.swept))
	k.m.left, k.swept = append(k.m.left, k.swept[:n]...), k.swept[n:]
	if !q.Sweeping() {
		k.same("left to sweep", len(k.swept), 0)
	}
}

func (k *machine) clear() {
	rest := k.q.Clear()
	k.m.purge(true)
	k.leaveToSweep()
	k.check("clear")
	for rest.Sweeping() {
		k.sweepOf(rest)
		k.check("sweep of what was cleared")
	}
	k.same("left", rest.Len(), 0)
}

func (k *machine) shrink() {
	k.q.Shrink()
	k.check("shrink")
}

// walk compares Each and EachBack from any place, stopping after a few.
func (k *machine) walk(from Seq) {
	if k.q.Sweeping() {
		return
	}
	earlier := func(x *modelMessage) bool {
		return x.seq>>56 > from>>56 || x.seq>>56 == from>>56 && x.seq < from
	}
	ahead, back := k.m.in(gone), k.m.in(gone)
	if from != 0 {
		ahead = slices.DeleteFunc(ahead, earlier)
		back = slices.DeleteFunc(back, func(x *modelMessage) bool { return !earlier(x) })
	}
	slices.Reverse(back)
	k.walkOne(from, ahead, k.q.Each)
	k.walkOne(from, back, k.q.EachBack)
}

func (k *machine) walkOne(from Seq, all []*modelMessage, each func(Seq, func(Seq, Message, State) bool)) {
	stop := 5
	each(from, func(s Seq, m Message, state State) bool {
		if len(all) == 0 {
			k.t.Fatalf("each from %v: %v is too many", from, s)
		}
		k.same("each", modelMessage{seq: s, Message: m, state: state},
			modelMessage{seq: all[0].seq, Message: all[0].Message, state: all[0].state})
		all = all[1:]
		stop--
		return stop != 0
	})
	if stop > 0 && len(all) > 0 {
		k.t.Fatalf("each from %v: ends before %v", from, all[0].seq)
	}
}

func (k *machine) same(op string, got, want any) {
	k.t.Helper()
	if got != want {
		k.t.Fatalf("%s: %+v, want %+v", op, got, want)
	}
}

func (k *machine) check(op string) {
	k.t.Helper()
	if left := append(k.left, k.fx.Settled...); !slices.Equal(left, k.m.left) {
		k.t.Fatalf("%s: let go %+v, want %+v", op, left, k.m.left)
	}
	k.left = k.left[:0]
	k.fx.Reset()
	k.m.left = k.m.left[:0]
	if err := k.q.Check(); err != nil {
		k.t.Fatalf("%s: %v", op, err)
	}
	ready, readyBytes := k.m.count(Ready)
	unacked, unackedBytes := k.m.count(Unacked)
	waiting, waitingBytes := k.m.count(Waiting)
	k.same(op+": counts", [4]int{k.q.Ready.Count, k.q.Unacked.Count, k.q.Waiting().Count, k.q.Len()}, [4]int{ready, unacked, waiting, ready + unacked + waiting})
	k.same(op+": bytes", [3]int64{k.q.Ready.Bytes, k.q.Unacked.Bytes, k.q.Waiting().Bytes}, [3]int64{readyBytes, unackedBytes, waitingBytes})
	if head := k.m.firstReady(); head != nil {
		s, m, ok := k.q.Head()
		k.same(op+": head", modelMessage{seq: s, Message: m, state: Ready}, modelMessage{seq: head.seq, Message: head.Message, state: Ready})
		k.same(op+": head", ok, true)
	}
	if !k.q.Sweeping() {
		k.walk(0)
	}
}
