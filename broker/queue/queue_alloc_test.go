package queue

import (
	"runtime"
	"testing"
	"unsafe"

	"curfew/broker/deadline"
)

const farAway = deadline.Instant(1) << 50 // a deadline that does not come

// filled is a queue of n ready messages with the seqs in order.
func filled(n int) (*Queue, []Seq) {
	q := New(unlimited)
	seqs := make([]Seq, n)
	for i := range seqs {
		seqs[i] = q.Publish(Message{ExpiresAt: farAway, Bytes: 100}, 0)
	}
	return q, seqs
}

var unlimited = Options{MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, step := range map[string]func(q *Queue, fx *Effects){
		"publish, take, ack one by one": func(q *Queue, fx *Effects) {
			for range 3 * chunkEntries {
				q.Publish(Message{Bytes: 1}, 0)
				d, _ := q.Take(1, fx)
				q.Settle(d.Seq, Acked, fx)
			}
		},
		"publish, take, ack in batches": func(q *Queue, fx *Effects) {
			for range maxSpares * chunkEntries {
				q.Publish(Message{}, 0)
			}
			for range maxSpares * chunkEntries {
				d, _ := q.Take(1, fx)
				q.Settle(d.Seq, Acked, fx)
			}
		},
		"expire behind the head": func(q *Queue, fx *Effects) {
			for range 3 * chunkEntries {
				s := q.Publish(Message{ExpiresAt: 5}, 0)
				q.Publish(Message{ExpiresAt: 6}, 0)
				q.Expire(5, s, 5, fx)
			}
			for q.Ready.Count > 0 {
				fx.Reset()
				q.Take(6, fx)
			}
		},
		"reschedule": func(q *Queue, fx *Effects) {
			for range 3 * chunkEntries {
				s := q.Publish(Message{ExpiresAt: 5}, 0)
				q.Reschedule(1, s, 5, 6, fx)
				q.Reschedule(1, s, 6, 1, fx)
			}
		},
		"requeue": func(q *Queue, fx *Effects) {
			q.Publish(Message{}, 0)
			for range 3 * chunkEntries {
				d, _ := q.Take(1, fx)
				q.Requeue(1, d.Seq, false, fx)
			}
			d, _ := q.Take(1, fx)
			q.Settle(d.Seq, Acked, fx)
		},
		"drop the head": func(q *Queue, fx *Effects) {
			for range 3 * chunkEntries {
				q.Publish(Message{Bytes: 1}, 0)
				q.Trim(fx)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var fx Effects
			q := New(unlimited)
			q.SetOptions(Options{MaxLength: 2000, MaxBytes: -1, DeliveryLimit: -1})
			run := func() {
				fx.Reset()
				step(q, &fx)
			}
			for range pageChunks { // through a few pages, to the capacities that stay
				run()
			}
			if n := testing.AllocsPerRun(pageChunks, run); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// The figures doc.go promises.
func TestMemory(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size != 24 {
		t.Errorf("an entry takes %d bytes", size)
	}
	const n = 1 << 20
	if each := float64(allocated(func() { publish(New(unlimited), n) })) / n; each > 25.5 {
		t.Errorf("a queued message takes %.1f bytes", each)
	}
	if size := allocated(func() { empty = New(unlimited) }); size > 288 {
		t.Errorf("an empty queue takes %d bytes", size)
	}
	q := New(unlimited)
	publish(q, n)
	purge(q, &Effects{})
	q.Shrink()
	l := &q.byPriority[0]
	if l.dir != nil || q.spares.chunks != nil || q.spares.page != nil {
		t.Errorf("an emptied and shrunk queue keeps %d pages, %d chunks", cap(l.dir), cap(q.spares.chunks))
	}
}

var empty *Queue // outside the test, so that it is allocated

func publish(q *Queue, n int) {
	for range n {
		q.Publish(Message{ExpiresAt: farAway, Bytes: 100}, 0)
	}
}

// allocated is how many bytes fn allocated, garbage included.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// One message that nobody settles must not keep the memory of those behind it.
func TestOldMessageInFront(t *testing.T) {
	q := New(unlimited)
	var fx Effects
	q.Publish(Message{}, 0)
	old, _ := q.Take(1, &fx)
	for range 40 << pageShift {
		q.Publish(Message{}, 0)
		d, _ := q.Take(1, &fx)
		q.Settle(d.Seq, Acked, &fx)
		fx.Reset()
	}
	chunks := 0
	for _, pg := range q.byPriority[0].dir {
		if pg != nil {
			chunks += pg.used
		}
	}
	if chunks > 2 {
		t.Errorf("%d chunks for one message", chunks)
	}
	if !q.Requeue(1, old.Seq, false, &fx) || q.Check() != nil {
		t.Error("the old message did not come back")
	}
	q.Take(1, &fx)
	q.Settle(old.Seq, Acked, &fx)
	if n := cap(q.byPriority[0].dir); n > 16 {
		t.Errorf("a directory for %d pages when the old message is gone", n)
	}
}
