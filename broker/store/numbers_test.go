package store

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumberSpans: the runs are those of what was added and not removed, without an empty one.
func TestNumberSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var s numberSpans
	var model []uint32
	for n := uint32(1); n < 500; n += 1 + uint32(rng.IntN(5)/4) {
		s.Add(uint64(n))
		model = append(model, n)
		for len(model) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(model))
			s.remove(model[i])
			model = slices.Delete(model, i, i+1)
		}
		var spans numberSpans
		for _, n := range model {
			spans.Add(uint64(n))
		}
		require.True(t, slices.Equal(spans, s), "%v instead of %v", s, spans)
	}
}

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
