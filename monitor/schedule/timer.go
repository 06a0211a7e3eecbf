package schedule

import "time"

// Timer wakes the fire loop. A tick may be left over from before Reset: the loop
// looks at the clock anyway.
type Timer interface {
	// C ticks once the duration of the last Reset has passed.
	C() <-chan time.Time
	// Reset replaces what the timer waits for; it must be above zero.
	Reset(time.Duration)
	// Stop frees the timer.
	Stop()
}

// runtimeTimer is the timer of the Go runtime. Outside a busy process it ticks up
// to a millisecond late: the runtime sleeps in whole milliseconds.
type runtimeTimer struct{ *time.Timer }

func newRuntimeTimer() Timer { return runtimeTimer{time.NewTimer(0)} }

func (t runtimeTimer) C() <-chan time.Time   { return t.Timer.C }
func (t runtimeTimer) Reset(d time.Duration) { t.Timer.Reset(d) }
func (t runtimeTimer) Stop()                 { t.Timer.Stop() }
