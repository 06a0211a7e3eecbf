package main

import (
	"time"

	"curfew/cmd/curfew/load"
)

// watchMachine keeps one imaginary deadline a millisecond with a bare timer until stop, which tells how late these were:
// what the machine lets anybody reach. A stall of 100 ms makes a hundred of them late.
func watchMachine() (stop func() load.Summary) {
	over, done := make(chan struct{}), make(chan load.Summary)
	go func() {
		var late load.Histogram
		late.Record(0)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-over:
				done <- *late.Summary()
				return
			case <-tick.C:
				for now := time.Now(); last.Before(now); last = last.Add(time.Millisecond) {
					late.Record(now.Sub(last))
				}
			}
		}
	}()
	return func() load.Summary {
		close(over)
		return <-done
	}
}
