package queue

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestSampleIsEveryNthInOrderOfDelivery holds a sampled walk, cut into pieces, against all that Take would hand out.
func TestSampleIsEveryNthInOrderOfDelivery(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		q := New(Options{Priorities: uint8(random.IntN(3))})
		var fx Effects
		var seqs []Seq
		for range random.IntN(5000) {
			seqs = append(seqs, q.Publish(Message{Bytes: 1, ExpiresAt: deadline.Instant(1 + random.IntN(1e6))}, uint8(random.IntN(4))))
		}
		for _, s := range seqs { // holes of every kind
			if m, _, _ := q.Find(s); random.IntN(3) == 0 {
				q.Expire(m.ExpiresAt, s, m.ExpiresAt, &fx)
			}
		}
		s := Sampling{Step: 1 + random.IntN(20)}
		type stop struct {
			ahead int
			seq   Seq
		}
		var got, want []stop
		for more := true; more; {
			more = q.Sample(&s, 1+random.IntN(4), func(ahead int, seq Seq, m Message) {
				kept, _, ok := q.Find(seq)
				require.True(t, ok)
				require.Equal(t, kept, m)
				got = append(got, stop{ahead, seq})
			})
		}
		require.Equal(t, q.Ready.Count, s.passed)
		for ahead := 0; ; ahead++ {
			d, ok := q.Take(0, &fx)
			if !ok {
				break
			}
			if ahead%s.Step == 0 {
				want = append(want, stop{ahead, d.Seq})
			}
		}
		require.Equal(t, want, got)
	}
}

func BenchmarkSample(b *testing.B) {
	q := New(Options{})
	const messages = 1 << 23
	for range messages {
		q.Publish(Message{Bytes: 1, ExpiresAt: 1}, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		s := Sampling{Step: messages / 2048}
		for q.Sample(&s, 1024, func(int, Seq, Message) {}) {
		}
	}
}
