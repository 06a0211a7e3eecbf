package incident

import (
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDeadManSwitch: it stops when something hangs, and goes on when that is over, and when its URL fails. The file is
// looked at each time; a mistake in it changes nothing.
func TestDeadManSwitch(t *testing.T) {
	path := writeFile(t, "deadManSwitch: {url: http://beat.example/secret}")
	synctest.Test(t, func(t *testing.T) {
		var hangs, broken atomic.Bool
		registry := prometheus.NewRegistry()
		a, err := New(Options{File: path, Stalled: func() []string { return map[bool][]string{true: {"loop fire"}}[hangs.Load()] }})
		require.NoError(t, err)
		registry.MustRegister(a.heart.lastTime)
		var beats atomic.Int64
		a.heart.poster.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			require.Equal(t, "/secret", r.URL.Path)
			beats.Add(1)
			return &http.Response{StatusCode: map[bool]int{false: 200, true: 500}[broken.Load()], Body: http.NoBody, Request: r}, nil
		})
		go a.Run(t.Context())
		synctest.Wait()
		pass(time.Minute + time.Second)
		require.EqualValues(t, 3, beats.Load())
		hangs.Store(true)
		pass(10 * time.Minute)
		require.EqualValues(t, 3, beats.Load())
		hangs.Store(false)
		broken.Store(true)
		pass(time.Minute)
		require.EqualValues(t, 5, beats.Load())
		require.Equal(t, 1, testutil.CollectAndCount(registry))

		require.NoError(t, os.Rename(writeFile(t, "deadManSwitch: {url: nowhere}"), path))
		pass(time.Minute)
		require.EqualValues(t, 7, beats.Load(), "a mistake changes nothing")
		require.NoError(t, os.Rename(writeFile(t, "deadManSwitch: {url: http://beat.example/secret, every: 5s}"), path))
		pass(time.Minute)
		require.GreaterOrEqual(t, beats.Load(), int64(12))
		require.NoError(t, os.Rename(writeFile(t, "rules: []"), path))
		pass(time.Minute)
		before := beats.Load()
		pass(time.Minute)
		require.Equal(t, before, beats.Load())
		require.Zero(t, testutil.CollectAndCount(registry), "no age of what does not exist")
	})
}
