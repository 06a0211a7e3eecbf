package broker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pending is how many publishes wait for Flush.
func (p *Publisher) Pending() int { return p.count }

// CopyOfRunning copies the folder of a broker that goes on: what a crash would leave. The store may
// rename a file meanwhile.
func CopyOfRunning(t *testing.T, dir string) string {
	for {
		to := filepath.Join(t.TempDir(), "crashed")
		err := os.CopyFS(to, os.DirFS(dir))
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
			return to
		}
	}
}
