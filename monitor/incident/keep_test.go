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

// TestTalliesOfAnEarlierVersion do not say what was parked of what they count.
func TestTalliesOfAnEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, keptFile), []byte(`{"tallies":[
		{"Kind":0,"VHost":"/","Queue":"parked","Action":"parked","Count":40,"Dropped":3},
		{"Kind":0,"VHost":"/","Queue":"later","Action":"parked","Count":40,"Parked":7},
		{"Kind":0,"VHost":"/","Queue":"moved","Action":"dead_lettered","Count":40}]}`), 0o600))
	a, err := New(Options{Dir: dir})
	require.NoError(t, err)
	for queue, parked := range map[string]int64{"parked": 37, "later": 7, "moved": 0} {
		require.Equal(t, parked, a.tallies.all[tallyKey{Expired, "/", queue}].Parked, queue)
	}
}
