package queue

import (
	"testing"

	"curfew/broker/deadline"
)

func BenchmarkPublishTakeAck(b *testing.B) {
	q := New(unlimited)
	var fx Effects
	b.ReportAllocs()
	for b.Loop() {
		q.Publish(Message{Bytes: 100}, 0)
		d, _ := q.Take(1, &fx)
		q.Settle(d.Seq, Acked, &fx)
		fx.Reset()
	}
}

// One iteration is one message; they come and go by 256.
func BenchmarkPublishTakeAckBatched(b *testing.B) {
	q := New(unlimited)
	var fx Effects
	var taken [256]Seq
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(taken) {
		for range taken {
			q.Publish(Message{ExpiresAt: farAway, Bytes: 100}, 0)
		}
		for i := range taken {
			d, _ := q.Take(1, &fx)
			taken[i] = d.Seq
		}
		for _, s := range taken {
			q.Settle(s, Acked, &fx)
		}
		fx.Reset()
	}
}

// A million stand in the queue; one is published, one somewhere in it expires.
func BenchmarkExpireMidQueue(b *testing.B) {
	const depth = 1_000_000
	q, seqs := filled(depth)
	var fx Effects
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i * 7919 % depth // a prime apart: visits all
		if a := q.Expire(farAway, seqs[at], farAway, &fx); a.Outcome != deadline.Expired {
			b.Fatal(a)
		}
		seqs[at] = q.Publish(Message{ExpiresAt: farAway, Bytes: 100}, 0)
		fx.Reset()
	}
}

// The oldest message comes back and is taken again, then one from behind the
// million that are gone.
func BenchmarkRequeueHeadAcrossGap(b *testing.B) {
	const gap = 1_000_000
	q, seqs := filled(gap)
	var fx Effects
	for _, s := range seqs[1:] {
		q.Expire(farAway, s, farAway, &fx)
	}
	q.Publish(Message{}, 0)
	head, _ := q.Take(1, &fx)
	tail, _ := q.Take(1, &fx)
	b.ReportAllocs()
	for b.Loop() {
		q.Requeue(1, tail.Seq, false, &fx)
		q.Requeue(1, head.Seq, false, &fx)
		head, _ = q.Take(1, &fx)
		tail, _ = q.Take(1, &fx)
	}
}

func BenchmarkRestore(b *testing.B) {
	q := New(unlimited)
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		q.Restore(Seq(3*i), Message{Bytes: 100}, 0)
	}
}
