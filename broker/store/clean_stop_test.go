package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Nothing was ever written: only the record of the clean stop shows that there was a store.
func TestCleanStopOfAnEmptyStoreIsFound(t *testing.T) {
	disk := newCrashDisk()
	s, found, err := reopen(disk)
	require.NoError(t, err)
	require.False(t, found.Clean)
	require.NoError(t, s.CloseClean(nil))
	s, found, err = reopen(disk)
	require.NoError(t, err)
	require.True(t, found.Clean)
	require.NoError(t, s.Close())
}
