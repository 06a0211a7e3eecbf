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
	c := slowServerConn{here}
	defer c.Close()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(-serverSilence+time.Minute)))
	go func() { _, _ = there.Write([]byte("x")) }()
	_, err := c.Read(make([]byte, 1))
	require.NoError(t, err, "the heartbeat's deadline is past, but not that of the connection")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(-serverSilence+time.Millisecond)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")
}
