package deadletters_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadletters"
)

// lifeOf names, for a child process, the folder in which a replay is under way.
const lifeOf = "CURFEW_TEST_REPLAY_DIR"

// TestReplayLife is one life of a process that replays; TestKilledReplay starts and
// kills it.
func TestReplayLife(t *testing.T) {
	dir := os.Getenv(lifeOf)
	if dir == "" {
		return
	}
	d := openDesk(t, filepath.Join(dir, "store"))
	r := d.runs(filepath.Join(dir, "replays"))
	if len(r.List()) == 0 {
		_, err := r.Start(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq"})
		require.NoError(t, err)
	}
	fmt.Println("under way")
	run := d.wait(r, r.List()[0].ID, false, deadletters.Replay{})
	require.Equal(t, deadletters.Done, run.State, run.Error)
	r.Close()
	require.NoError(t, d.b.Close())
}

// TestKilledReplay kills a replay at random, again and again, until one life comes to
// its end: no message is lost, and none is there twice.
func TestKilledReplay(t *testing.T) {
	dir := t.TempDir()
	const n = 10_000
	d := openDesk(t, filepath.Join(dir, "store"))
	d.dead(n)
	require.NoError(t, d.b.Close())
	kills := 0
	for life := 0; life < 40; life++ {
		if liveOnce(t, dir, time.Duration(rand.IntN(20*(life+1)))*time.Millisecond) {
			break
		}
		kills++
		countAll(t, dir, n)
	}
	q, dlq := countAll(t, dir, n)
	assert.Equal(t, n, q)
	assert.Zero(t, dlq)
	assert.Positive(t, kills)
	t.Log("killed", kills, "times")
}

// liveOnce runs a life and kills it after a time; true if it came to its end before.
func liveOnce(t *testing.T, dir string, after time.Duration) bool {
	cmd := exec.Command(os.Args[0], "-test.run=^TestReplayLife$")
	cmd.Env = append(os.Environ(), lifeOf+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "under way" {
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	for lines.Scan() {
	}
	return cmd.Wait() == nil
}

// countAll opens what a life left and counts where the messages are.
func countAll(t *testing.T, dir string, n int) (q, dlq int) {
	d := openDesk(t, filepath.Join(dir, "store"))
	seen := map[string]int{}
	for _, body := range append(d.bodies(d.q), d.bodies(d.dlq)...) {
		seen[body]++
	}
	q, dlq = len(d.queued(d.q)), len(d.queued(d.dlq))
	require.NoError(t, d.b.Close())
	require.Len(t, seen, n, "none is lost")
	require.Equal(t, n, q+dlq, "none is doubled")
	return q, dlq
}
