package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"curfew/integration/bench/load"
)

// watchMachine keeps one imaginary deadline per millisecond, with a bare sleep of the
// kernel, until stop, which returns their lateness: the best that anybody can reach on this
// machine. A stall of 100 ms makes a hundred of them late.
func watchMachine() (stop func() load.Summary) {
	over, done := make(chan struct{}), make(chan load.Summary)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var late load.Histogram
		late.Record(0)
		for next := time.Now(); ; {
			select {
			case <-over:
				done <- *late.Summary()
				return
			default:
			}
			sleep := unix.NsecToTimespec(max(1, int64(time.Until(next))))
			unix.Nanosleep(&sleep, nil) //nolint:errcheck // a signal ends it early; the next sleep takes the remaining time
			for now := time.Now(); !next.After(now); next = next.Add(time.Millisecond) {
				late.Record(now.Sub(next))
			}
		}
	}()
	return func() load.Summary {
		close(over)
		return <-done
	}
}
