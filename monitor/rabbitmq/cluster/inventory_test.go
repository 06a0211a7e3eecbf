package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPolled: a queue was polled if its count has grown since an earlier inventory, not if it is above 0.
func TestPolled(t *testing.T) {
	c := &Cluster{}
	require.False(t, c.polled("q", 7), "that may have been long ago")
	require.False(t, c.polled("q", 7))
	require.False(t, c.polled("other", 0))
	require.True(t, c.polled("q", 8))
	require.True(t, c.polled("q", 8), "for ten minutes")
	require.False(t, c.polled("other", 0), "its statistics have begun again, without a read")
	require.True(t, c.polled("other", 1))
}
