package broker

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryHoldsPublishersBackAndLetsThemGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		b, err := New(Options{
			Clock:       func() int64 { return time.Now().UnixNano() },
			MemoryLimit: 1000, MemoryInUse: used.Load,
		})
		require.NoError(t, err)
		defer b.Close()
		after := func(bytes int64) string {
			used.Store(bytes)
			time.Sleep(2 * memoryEvery)
			reason, _ := b.Gate()
			return reason
		}
		assert.Equal(t, "", after(1000))
		assert.Equal(t, "low on memory", after(1001))
		assert.Equal(t, "low on memory", after(950), "not before there is some room")
		_, changed := b.Gate()
		assert.Equal(t, "", after(899))
		select {
		case <-changed:
		default:
			t.Error("those that wait were not told")
		}
		b.gate.set(b.log, &b.gate.disk, true)
		assert.Equal(t, "low on memory & disk", after(2000))
	})
}

func TestMemoryInUseIsMeasured(t *testing.T) {
	assert.Greater(t, memoryInUse(), int64(1<<20))
}
