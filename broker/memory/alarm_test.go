package memory

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// running is an alarm that measures until stop.
func running(o AlarmOptions) (a *Alarm, stop func()) {
	o.Log = zap.NewNop()
	a = NewAlarm(o)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		a.Run(quit)
		close(ended)
	}()
	return a, func() {
		close(quit)
		<-ended
	}
}

func TestMemoryHoldsPublishersBackAndLetsThemGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		a, stop := running(AlarmOptions{MemoryLimit: 1000, MemoryInUse: used.Load})
		defer stop()
		after := func(bytes int64) string {
			used.Store(bytes)
			time.Sleep(2 * time.Second)
			reason, _ := a.Reason()
			return reason
		}
		assert.Equal(t, "", after(1000))
		assert.Equal(t, "low on memory", after(1001))
		assert.Equal(t, "low on memory", after(950), "not before there is some room")
		_, changed := a.Reason()
		assert.Equal(t, "", after(899))
		select {
		case <-changed:
		default:
			t.Error("those that wait were not told")
		}
		a.Store(true, false)
		assert.Equal(t, "low on memory & disk", after(2000))
	})
}

// TestGarbageIsCollectedWhileMemoryIsLow: publishers that wait make none, so that nothing else would collect it for two minutes.
func TestGarbageIsCollectedWhileMemoryIsLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forced := func() uint32 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.NumForcedGC
		}
		began := forced()
		a, stop := running(AlarmOptions{MemoryLimit: 1000, MemoryInUse: func() int64 {
			if forced() > began+1 {
				return 500
			}
			return 1001
		}})
		defer stop()
		time.Sleep(2 * time.Second)
		require.True(t, a.Blocked(), "not too often")
		time.Sleep(2 * collectEvery)
		require.False(t, a.Blocked())
	})
}

func TestLowDiskHoldsPublishersBackAndLetsThemGo(t *testing.T) {
	for _, c := range []struct{ all, limit int64 }{{1 << 30, 1000}, {16_000, 1_000_000}} { // the second: a sixteenth of a small disk
		synctest.Test(t, func(t *testing.T) {
			var free atomic.Int64
			free.Store(5000)
			a, stop := running(AlarmOptions{
				Dir: t.TempDir(), DiskFreeLimit: c.limit,
				DiskSpace: func(string) (int64, int64, error) { return free.Load(), c.all, nil },
			})
			defer stop()
			for _, want := range []struct {
				free   int64
				reason string
			}{{1000, ""}, {999, "low on disk"}, {1000, ""}} {
				free.Store(want.free)
				time.Sleep(2 * time.Second)
				reason, _ := a.Reason()
				assert.Equal(t, want.reason, reason, "%d free", want.free)
			}
		})
	}
}

// While nobody publishes memory is looked at less often, and at once when somebody does.
func TestMemoryIsMeasuredOftenWhileSomebodyPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		a, stop := running(AlarmOptions{MemoryLimit: 1000, MemoryInUse: func() int64 { looks.Add(1); return 1 }})
		defer stop()
		within := func(d time.Duration) int64 {
			before := looks.Load()
			time.Sleep(d)
			synctest.Wait()
			return looks.Load() - before
		}
		time.Sleep(time.Second + time.Second/2) // it is once a second, at the full second
		assert.EqualValues(t, 10, within(10*time.Second))
		time.Sleep(time.Second / 4)
		a.Reason()
		assert.EqualValues(t, 1, within(0), "at once")
		for range 10 {
			a.Reason()
			a.Reason()
			assert.EqualValues(t, 1, within(levelsEvery))
		}
		assert.LessOrEqual(t, within(10*time.Second), int64(12))
	})
}

func TestDiskSpaceIsMeasured(t *testing.T) {
	free, all, err := DiskSpace(t.TempDir())
	require.NoError(t, err)
	assert.Positive(t, free)
	assert.Less(t, free, all)
}

// The kernel counts in batches for each processor, so a small process may seem to use nothing.
func TestMemoryInUseIsMeasured(t *testing.T) {
	used := make([]byte, 64<<20)
	for i := range used {
		used[i] = 1
	}
	assert.Greater(t, memoryInUse(), int64(32<<20))
	runtime.KeepAlive(used)
}
