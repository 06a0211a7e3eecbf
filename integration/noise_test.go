package integration

import (
	"slices"
	"time"
)

// watchMachine keeps one imaginary deadline per millisecond with a bare timer, beside a run, until stop: that tells how late the machine
// lets anybody be. stop returns the sorted lateness of these deadlines. A stall of 100 ms makes a hundred of them late.
func watchMachine() (stop func() []time.Duration) {
	over := make(chan struct{})
	late := inBackground(func() (late []time.Duration) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-over:
				slices.Sort(late)
				return late
			case <-tick.C:
				now := time.Now()
				for ; last.Before(now); last = last.Add(time.Millisecond) {
					late = append(late, now.Sub(last))
				}
			}
		}
	})
	return func() []time.Duration {
		close(over)
		return late()
	}
}
