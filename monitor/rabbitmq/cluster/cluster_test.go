package cluster

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestABusyNodeMayBeSilentForLonger than the heartbeat of a connection that holds messages allows.
func TestABusyNodeMayBeSilentForLonger(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	c := patientConn{here}
	defer c.Close()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(-serverPatience+200*time.Millisecond)))
	go func() { _, _ = there.Write([]byte("x")) }()
	_, err := c.Read(make([]byte, 1))
	require.NoError(t, err, "its deadline is past, and the patience is not")
	_, err = c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")
}
