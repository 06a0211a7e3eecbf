package main

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// listenAsSystemd reads what is said to NOTIFY_SOCKET.
func listenAsSystemd(t *testing.T) (heard func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
		said := make([]byte, 256)
		n, err := socket.Read(said)
		require.NoError(t, err)
		return string(said[:n])
	}
}

func TestSystemdIsToldReadyAliveAndStopping(t *testing.T) {
	heard := listenAsSystemd(t)
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(int((20 * time.Millisecond).Microseconds())))
	ctx, cancel := context.WithCancel(t.Context())
	var dead atomic.Bool
	asked := make(chan struct{}, 1000)
	stop := tellSystemd(ctx, func() bool {
		asked <- struct{}{}
		return !dead.Load()
	}, zap.NewNop())
	assert.Equal(t, "READY=1", heard())
	assert.Equal(t, "WATCHDOG=1", heard())

	dead.Store(true)
	for range 5 {
		<-asked
	}
	cancel()
	stop()
	said := heard()
	for said == "WATCHDOG=1" { // said before it was dead
		said = heard()
	}
	assert.Equal(t, "STOPPING=1", said)
}

func TestNothingIsToldWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	tellSystemd(t.Context(), func() bool { panic("nobody asked") }, zap.NewNop())()
}

// TestServeTellsSystemd: the command as the unit starts it.
func TestServeTellsSystemd(t *testing.T) {
	heard := listenAsSystemd(t)
	startServe(t)
	assert.Equal(t, "READY=1", heard())
}
