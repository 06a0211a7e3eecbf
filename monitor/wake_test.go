package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAlarmRingsForEarlierInstantsOnly(t *testing.T) {
	rung := func(a *alarm) bool {
		select {
		case <-a.ring:
			return true
		default:
			return false
		}
	}
	a := newAlarm()
	a.before(5)
	a.before(5)
	require.True(t, rung(a), "while the loop looks, everything rings")
	require.False(t, rung(a), "once")
	a.set(10)
	a.before(10)
	require.False(t, rung(a))
	a.before(9)
	require.True(t, rung(a))
}
