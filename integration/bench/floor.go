package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"curfew/cmd/curfew/load"
)

// watchMachine keeps one imaginary deadline a millisecond with a bare sleep of the kernel's until stop, which tells how late
// these were: what the machine lets anybody reach. A stall of 100 ms makes a hundred of them late.
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
			unix.Nanosleep(&sleep, nil) //nolint:errcheck // a signal ends it early: then the next is as long as is left
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
