package dashboard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestWaited: of a queue that nobody consumes nothing is said to be quick.
func TestWaited(t *testing.T) {
	require.Equal(t, "none was consumed in the last minutes", waited(&deadline.Wait{Oldest: 9000}))
	require.Equal(t, "of those consumed in the last minutes, half up to 1 s, 99 in 100 up to 20 s", waited(&deadline.Wait{P50: 1000, P99: 20_000}))
}
