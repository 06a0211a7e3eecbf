package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/scheduler"
)

func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const startAt = 1_795_217_348_123
		began := time.Now()
		nowMillis := func() int64 { return startAt + time.Since(began).Milliseconds() }
		a := scheduler.NewAlarm()
		ringsAt := func() int64 {
			<-a.C()
			return nowMillis()
		}
		silent := func(d time.Duration) {
			t.Helper()
			select {
			case <-a.C():
				require.Fail(t, "it rang")
			case <-time.After(d):
			}
		}
		silent(time.Hour * 1000)

		for _, wait := range []int64{1, 250, 3_600_000, 10 * 365 * 86_400_000} {
			at := nowMillis() + wait
			a.Set(at, nowMillis())
			require.Equal(t, at, ringsAt())
		}
		silent(time.Hour * 1000)

		before := nowMillis()
		a.Set(1, nowMillis())
		require.Equal(t, before, ringsAt(), "in the past: at once")

		a.Set(nowMillis()+100, nowMillis())
		a.Set(nowMillis()+500, nowMillis())
		silent(400 * time.Millisecond)
		ringsAt()

		a.Set(nowMillis(), nowMillis()) // has rung, unheard
		a.Set(nowMillis()+50, nowMillis())
		silent(49 * time.Millisecond)
		ringsAt()

		a.Set(nowMillis()+50, nowMillis())
		a.Set(0, nowMillis())
		silent(time.Hour)
		a.Set(nowMillis()+50, nowMillis())
		a.Stop()
		silent(time.Hour)
		a.Set(nowMillis()+50, nowMillis())
		ringsAt()
	})
}

// A clock that shows whole milliseconds lies behind: the alarm must not ring in the
// part of one it does not show.
func TestAlarmIsNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := scheduler.NewAlarm()
		time.Sleep(999_999 * time.Nanosecond)
		nowMillis := time.Since(began).Milliseconds()
		a.Set(nowMillis+1, nowMillis)
		<-a.C()
		require.GreaterOrEqual(t, time.Since(began), time.Millisecond)
	})
}

func TestAlarmSpansWhatADurationCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := scheduler.NewAlarm()
		a.Set(1<<63-1, 1)
		select {
		case <-a.C():
			require.Fail(t, "it rang")
		case <-time.After(24 * time.Hour):
		}
		a.Stop()
	})
}
