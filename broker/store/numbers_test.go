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
