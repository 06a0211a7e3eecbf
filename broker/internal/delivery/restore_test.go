package delivery

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/broker/store"
)

// TestTimesAreFilledIn where a message has left that may have had a mark. The others count with the one before.
func TestTimesAreFilledIn(t *testing.T) {
	const high = 1 << 56 // the first number of priority 1
	var entries []store.RecoveredEntry
	for _, e := range [][2]uint64{{1, 0}, {3, 30}, {4, 0}, {7, 0}, {8, 0}, {9, 90}, {12, 0}, {high, 0}, {high + 1, 5}} {
		entries = append(entries, store.RecoveredEntry{Seq: e[0], EnqueuedAt: deadline.Instant(e[1])})
	}
	fillTimes(entries, 1000)
	var is []int
	for _, e := range entries {
		is = append(is, int(e.EnqueuedAt))
	}
	require.Equal(t, []int{30, 30, 0, 90, 0, 90, 1000, 5, 5}, is)
}
