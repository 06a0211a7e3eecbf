package store

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var s numberSet
	model := map[uint64]bool{}
	for range 500 {
		n := uint64(rng.IntN(100))
		s.Add(n)
		model[n] = true
	}
	require.True(t, slices.IsSorted(s))
	require.Len(t, s, len(model))
	for n := range uint64(110) {
		require.Equal(t, model[n], s.Has(n))
	}
}

func TestSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var s numberSpans
	model := map[uint64]bool{}
	for n := uint64(1); n < 300; n++ {
		if rng.IntN(3) > 0 {
			s.Add(n)
			model[n] = true
		}
		gone := uint64(rng.IntN(int(n) + 1))
		s.Remove(gone)
		delete(model, gone)
		total := 0
		for i, r := range s {
			require.NotZero(t, r.Count)
			require.True(t, i == 0 || s[i-1].First+s[i-1].Count < r.First, "runs do not touch")
			for k := range r.Count {
				require.True(t, model[uint64(r.First+k)])
				total++
			}
		}
		require.Len(t, model, total)
	}
}
