package scheduler

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"curfew/broker/deadline"
)

const (
	startAt  = 1_795_217_348_123_456
	endAt    = startAt + 100_000_000_000 // after all deadlines
	batchLen = 256
)

// streams are the orders deadlines come in.
var streams = []struct {
	name string
	next func(i int, rng *rand.Rand) deadline.Ref
}{
	{"one-ttl", func(i int, _ *rand.Rand) deadline.Ref {
		return deadline.Ref{Deadline: startAt + deadline.Instant(i)*10, Queue: 7, Seq: uint64(i)}
	}},
	{"ten-ttls", func(i int, _ *rand.Rand) deadline.Ref {
		queue := uint64(i % 10)
		return deadline.Ref{Deadline: startAt + deadline.Instant(i)*10 + deadline.Instant(queue)*3_600_000_000, Queue: queue, Seq: uint64(i)}
	}},
	{"random", func(i int, rng *rand.Rand) deadline.Ref {
		return deadline.Ref{Deadline: startAt + deadline.Instant(rng.Int64N(86_400_000_000)), Queue: uint64(rng.IntN(100)), Seq: uint64(i)}
	}},
	{"many-queues", func(i int, rng *rand.Rand) deadline.Ref {
		return deadline.Ref{Deadline: startAt + deadline.Instant(i)*10, Queue: rng.Uint64N(100_000), Seq: uint64(i)}
	}},
}

// BenchmarkApply adds to what 10 million others are in, 256 at a time, and removes
// what was added 100,000 before, so that the size stays.
func BenchmarkApply(b *testing.B) {
	for _, stream := range streams {
		b.Run(stream.name, func(b *testing.B) {
			s, rng := NewIndex(nil), rand.New(rand.NewPCG(1, 2))
			fill(s, 10_000_000, rng, stream.next)
			ring := make([]deadline.Ref, 100*1024)
			add, remove := make([]deadline.Ref, batchLen), make([]deadline.Ref, batchLen)
			i := 10_000_000
			step := func() {
				at := i % len(ring)
				copy(remove, ring[at:at+batchLen])
				for k := range add {
					add[k] = stream.next(i, rng)
					i++
				}
				copy(ring[at:], add)
				if remove[0].Deadline == 0 {
					remove = remove[:0]
				}
				_ = s.Apply(context.Background(), add, remove)
				remove = remove[:batchLen]
			}
			i -= i % len(ring)
			for range len(ring) / batchLen {
				step()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += batchLen {
				step()
			}
		})
	}
}

// BenchmarkFill builds up 10 million entries; it reports what they take, and the
// longest call.
func BenchmarkFill(b *testing.B) {
	for _, stream := range streams {
		b.Run(stream.name, func(b *testing.B) {
			const n = 10_000_000
			for range b.N {
				before := heapBytes()
				s := NewIndex(nil)
				worst := fill(s, n, rand.New(rand.NewPCG(1, 2)), stream.next)
				b.ReportMetric(float64(heapBytes()-before)/n, "B/entry")
				b.ReportMetric(float64(worst.Microseconds()), "us/worst-call")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
				runtime.KeepAlive(s)
			}
		})
	}
}

// BenchmarkFire claims and settles, of 10 million, 1,000 at a time.
func BenchmarkFire(b *testing.B) {
	for _, stream := range streams {
		b.Run(stream.name, func(b *testing.B) {
			const n = 10_000_000
			var s *Index
			var claimed []deadline.Ref
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(claimed) {
				if i%n == 0 {
					b.StopTimer()
					s = NewIndex(nil)
					fill(s, n, rand.New(rand.NewPCG(1, 2)), stream.next)
					b.StartTimer()
				}
				claimed, _, _ = s.Claim(context.Background(), endAt, 1000, endAt+1, claimed[:0])
				if len(claimed) == 0 {
					b.Fatal("nothing was due")
				}
				_ = s.Settle(context.Background(), claimed, nil)
			}
		})
	}
}

// fill adds n shadows, a batch at a time, and returns how long the longest took.
func fill(s *Index, n int, rng *rand.Rand, next func(int, *rand.Rand) deadline.Ref) (worst time.Duration) {
	batch := make([]deadline.Ref, 0, batchLen)
	for i := range n {
		batch = append(batch, next(i, rng))
		if len(batch) == batchLen || i == n-1 {
			began := time.Now()
			_ = s.Apply(context.Background(), batch, nil)
			worst = max(worst, time.Since(began))
			batch = batch[:0]
		}
	}
	return worst
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
