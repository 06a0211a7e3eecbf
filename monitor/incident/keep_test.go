package incident

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestChangesThatAreNotSavedAtOnce: each of several that come together is undone, whichever of them fails first. Undoing one brought the others back.
func TestChangesThatAreNotSavedAtOnce(t *testing.T) {
	dir := t.TempDir()
	a, err := New(Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, keptFile+".new"), 0o700)) // where it is written
	a.saving.Lock()                                                          // until all have been asked for
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := a.AddWindow(Window{Until: time.Now().Add(time.Hour)})
			assert.ErrorIs(t, err, ErrNotSaved)
		})
	}
	a.saving.Unlock()
	all.Wait()
	require.Empty(t, a.Windows())
}
