package schedule

import "time"

// Timer wakes the fire loop. A tick may be left over from before Reset: the loop
// looks at the clock anyway.
type Timer struct {
	// C ticks once the duration of the last Reset has passed.
	C <-chan time.Time
	// Reset replaces what the timer waits for; it must be above zero.
	Reset func(time.Duration)
	// Stop frees the timer.
	Stop func()
}

// runtimeTimer is the timer of the Go runtime. Outside a busy process it ticks up
// to a millisecond late: the runtime sleeps in whole milliseconds.
func runtimeTimer() (Timer, error) {
	t := time.NewTimer(0)
	return Timer{t.C, func(d time.Duration) { t.Reset(d) }, func() { t.Stop() }}, nil
}
