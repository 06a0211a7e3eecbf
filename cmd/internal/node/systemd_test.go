package node

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

// listenAsSystemd returns a function that reads one notification to NOTIFY_SOCKET.
func listenAsSystemd(t *testing.T) (read func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
		text := make([]byte, 256)
		n, err := socket.Read(text)
		require.NoError(t, err)
		return string(text[:n])
	}
}

func TestSystemdIsNotified(t *testing.T) {
	read := listenAsSystemd(t)
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(int((20 * time.Millisecond).Microseconds())))
	ctx, cancel := context.WithCancel(t.Context())
	var dead atomic.Bool
	asked := make(chan struct{}, 1000)
	stop := notifySystemd(ctx, func() bool {
		asked <- struct{}{}
		return !dead.Load()
	}, zap.NewNop())
	assert.Equal(t, "READY=1", read())
	assert.Equal(t, "WATCHDOG=1", read())

	dead.Store(true)
	for range 5 {
		<-asked
	}
	cancel()
	stop()
	last := read()
	for last == "WATCHDOG=1" { // sent before it was dead
		last = read()
	}
	assert.Equal(t, "STOPPING=1", last)
}

func TestNoNotificationWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	notifySystemd(t.Context(), func() bool { panic("nobody asked") }, zap.NewNop())()
}
