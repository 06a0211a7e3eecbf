package store

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var table table
	model := map[uint64]*segment{}
	require.Nil(t, table.get(5))
	for n := uint64(1); n < 20000; n++ {
		s := &segment{number: n}
		table.set(s)
		model[n] = s
		for len(model) > 20 {
			for gone := range model {
				if rng.IntN(2) == 0 {
					table.clear(gone)
					delete(model, gone)
				}
				break
			}
		}
	}
	for n := range uint64(20100) {
		require.Same(t, model[n], table.get(n))
	}
	var last uint64
	table.each(func(s *segment) bool {
		require.Greater(t, s.number, last)
		require.Same(t, model[s.number], s)
		last = s.number
		delete(model, s.number)
		return true
	})
	require.Empty(t, model)
	require.LessOrEqual(t, len(table.all.Load().segments), 4096)
}
