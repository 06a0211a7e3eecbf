package redisstore

import (
	"context"
	"testing"

	"curfew/broker/deadline"
	"curfew/integration/testenv"
)

const benchBatch = 1000

// benchStore returns a store with n shadows in it, and further ones to add, a batch
// at a time.
func benchStore(b *testing.B, n int) (s *Store, batch func() []deadline.Ref) {
	s = openStore(b, Options{URL: testenv.StartRedis(b).URL})
	seq := uint64(0)
	shadows := make([]deadline.Ref, benchBatch)
	batch = func() []deadline.Ref {
		for i := range shadows {
			seq++
			shadows[i] = deadline.Ref{Deadline: startAt + deadline.Instant(seq*7919%1_000_000), Queue: seq % 20, Seq: seq}
		}
		return shadows
	}
	for range n / benchBatch {
		must(b, s.Apply(context.Background(), batch(), nil))
	}
	b.ReportAllocs()
	b.ResetTimer()
	return s, batch
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAdd(b *testing.B) {
	s, batch := benchStore(b, 100_000)
	for n := 0; n < b.N; n += benchBatch {
		must(b, s.Apply(context.Background(), batch(), nil))
	}
}

func BenchmarkRemove(b *testing.B) {
	s, batch := benchStore(b, 100_000)
	for n := 0; n < b.N; n += benchBatch {
		some := batch()
		b.StopTimer()
		must(b, s.Apply(context.Background(), some, nil))
		b.StartTimer()
		must(b, s.Apply(context.Background(), nil, some))
	}
}

// BenchmarkFire claims and settles, of 100,000, 1,000 at a time.
func BenchmarkFire(b *testing.B) {
	s, batch := benchStore(b, 100_000)
	ctx := context.Background()
	var claimed []deadline.Ref
	for n := 0; n < b.N; n += benchBatch {
		b.StopTimer()
		must(b, s.Apply(ctx, batch(), nil))
		b.StartTimer()
		var err error
		claimed, _, err = s.Claim(ctx, startAt+1e9, benchBatch, startAt+2e9, claimed[:0])
		must(b, err)
		must(b, s.Settle(ctx, claimed, nil))
	}
}

// BenchmarkClaimNothing is what a look at an idle schedule costs.
func BenchmarkClaimNothing(b *testing.B) {
	s, _ := benchStore(b, 1000)
	for range b.N {
		_, _, err := s.Claim(context.Background(), startAt-1, benchBatch, startAt, nil)
		must(b, err)
	}
}
