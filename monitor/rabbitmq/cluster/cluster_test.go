package cluster

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestNodesThatCannotBeReached are logged once, and not for the virtual host / if that is only looked at for events.
func TestNodesThatCannotBeReached(t *testing.T) {
	refuses, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refuses.Close()
	core, logged := observer.New(zap.WarnLevel)
	c, err := Open(Options{URL: "amqp://guest:guest@" + refuses.Addr().String() + "/shop", Log: zap.New(core)})
	require.NoError(t, err)
	for vhost, want := range map[string]int{"/": 0, "shop": 1} {
		for range 2 {
			_, err = c.round(t.Context(), vhost, "test", heartbeat)
			require.Error(t, err)
		}
		require.Len(t, logged.TakeAll(), want, vhost)
	}
}

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
