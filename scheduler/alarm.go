package scheduler

import "time"

// Alarm is the one timer of a schedule: it rings once at the earliest instant
// anything is to be done. It is not safe for concurrent use: the loop that waits
// for it sets it. Create it with NewAlarm.
type Alarm struct {
	timer *time.Timer
}

// NewAlarm returns an alarm that is not set.
func NewAlarm() *Alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Alarm{timer: t}
}

// Set lets the alarm ring at atMillis, at once if that is not after nowMillis, and
// forgets what was set before, rung or not; 0 sets nothing. Both are Unix ms. It
// never rings early: nowMillis is the clock rounded down, so the span to atMillis
// is rounded up.
func (a *Alarm) Set(atMillis, nowMillis int64) {
	if atMillis == 0 {
		a.timer.Stop()
		return
	}
	wait := min(max(atMillis-nowMillis, 0), maxWaitMillis)
	a.timer.Reset(time.Duration(wait) * time.Millisecond)
}

// maxWaitMillis keeps the span within a time.Duration, which ends at 292 years. Who
// hears the alarm then finds nothing due and sets it again.
const maxWaitMillis = int64(1<<63-1) / int64(time.Millisecond)

// C delivers once when the alarm rings. It is the same channel for the alarm's
// whole life.
func (a *Alarm) C() <-chan time.Time { return a.timer.C }

// Stop silences the alarm; Set may follow.
func (a *Alarm) Stop() { a.timer.Stop() }
