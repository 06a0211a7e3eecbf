package simulation

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// image copies the directory as it is. Nothing writes to it at that time, so this is what a
// killed process would leave.
func (w *world) image() string {
	to := scratch(w.t)
	files, err := os.ReadDir(w.dir)
	for _, f := range files {
		if err == nil {
			err = copySparsely(filepath.Join(w.dir, f.Name()), filepath.Join(to, f.Name()))
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return to
}

// copySparsely turns zeros into holes: most of a journal is space allocated ahead.
func copySparsely(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	size := int64(len(data))
	if size <= segmentBytes && bytes.Equal(data, zeros[:size]) {
		data = nil
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return err
	}
	return os.Truncate(to, size)
}

var zeros [segmentBytes]byte

// scratchBytes is the space that the directories of a few simulations take.
const scratchBytes = 1 << 30

// scratch creates a directory, in memory if there is room: thousands of disk syncs are not
// what is tested here.
func scratch(t *testing.T) string {
	const memory = "/dev/shm"
	var st unix.Statfs_t
	if err := unix.Statfs(memory, &st); err != nil || int64(st.Bavail)*int64(st.Bsize) < scratchBytes {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "curfew-simulation")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
