package commands

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	screen = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { screen.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { terminal.Close() })
	return screen, terminal
}

// TestReplayOnATerminal: a terminal gets the progress bar, and an interrupt the message that the run goes on.
func TestReplayOnATerminal(t *testing.T) {
	r := startRunning(t)
	r.dead(3)
	screen, terminal := openTerminal(t)
	cmd := command(t, append([]string{"dlq", "replay", "orders.dead", "--ttl", "none", "--rate", "0.0001"}, r.flags...))
	cmd.Stderr = terminal
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	seen := readUntil(t, screen, "33%  1 replayed") // the second waits for its turn
	assert.Contains(t, seen, "\r[##########....................]  33%  1 replayed")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	assert.Error(t, <-ended)
	assert.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
	assert.Contains(t, readUntil(t, screen, "ends it"), "the replay goes on; curfew dlq replays shows it, curfew dlq cancel ")
	assert.Contains(t, r.ok("dlq", "runs"), "running")
}

// readUntil reads what is drawn until text is on the screen.
func readUntil(t *testing.T, screen *os.File, text string) string {
	t.Helper()
	stop := time.AfterFunc(time.Minute, func() { screen.Close() })
	defer stop.Stop()
	var seen bytes.Buffer
	b := make([]byte, 4096)
	for !bytes.Contains(seen.Bytes(), []byte(text)) {
		n, err := screen.Read(b)
		require.NoError(t, err, "%q", seen.String())
		seen.Write(b[:n])
	}
	return seen.String()
}
