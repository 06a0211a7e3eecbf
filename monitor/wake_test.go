package monitor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimelineWakesInTheRightPartOfAMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offset := 300 * time.Microsecond // the primary's clock is that much further
		now := func() int64 { return time.Now().Add(offset).UnixMilli() }
		line := newTimeline(now)
		for range 50 { // read at all parts of a millisecond
			time.Sleep(730 * time.Microsecond)
			line.read()
		}
		for range 100 {
			time.Sleep(170 * time.Microsecond)
			at := line.read() + 7
			time.Sleep(line.until(at))
			require.Equal(t, at, now(), "not early, and not a millisecond late")
			late := time.Now().Add(offset).Sub(time.UnixMilli(at))
			require.Less(t, late, 100*time.Microsecond)
		}
	})
}

func TestTimelineFollowsAClockThatIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offset := time.Hour
		now := func() int64 { return time.Now().Add(offset).UnixMilli() }
		line := newTimeline(now)
		offset = 0
		line.read()
		at := now() + 1000
		time.Sleep(line.until(at))
		require.Equal(t, at, now())
	})
}

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
