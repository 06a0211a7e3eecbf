package operate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLossesOfAll: queues in which an expiry is no loss do not count, and where there are no others nothing is known.
func TestLossesOfAll(t *testing.T) {
	meant := &Queue{Losses: Losses{-1, -1, 0}}
	require.Equal(t, Losses{-1, -1, 0}, LossesOfAll([]*Queue{meant, meant}))
	require.Equal(t, Losses{3, 40, 30}, LossesOfAll([]*Queue{meant, {Losses: Losses{3, 0, 0}}, {Losses: Losses{0, 40, 30}}, meant}))
}
