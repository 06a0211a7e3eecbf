package node

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestProbe: a part that does not answer is stalled until it does, and is asked once.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		p := &probe{name: "store", ask: func(answer func()) {
			asked.Add(1)
			<-release
			answer()
		}}
		probes := []*probe{p}
		require.Equal(t, []string{"store"}, stalledParts(probes))
		require.Equal(t, []string{"store"}, stalledParts(probes))
		require.Equal(t, int32(1), asked.Load())
		close(release)
		require.Empty(t, stalledParts(probes))
		require.Empty(t, stalledParts(probes))
		require.Equal(t, int32(2), asked.Load())
	})
}
