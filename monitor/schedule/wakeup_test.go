package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWakeupWakesForEarlierInstantsOnly(t *testing.T) {
	woken := func(w *wakeup) bool {
		select {
		case <-w.signal:
			return true
		default:
			return false
		}
	}
	w := newWakeup()
	w.wakeFor(5)
	w.wakeFor(5)
	require.True(t, woken(w), "while the loop looks, every instant wakes it")
	require.False(t, woken(w), "once")
	w.sleepUntil(10)
	w.wakeFor(10)
	require.False(t, woken(w))
	w.wakeFor(9)
	require.True(t, woken(w))
}
