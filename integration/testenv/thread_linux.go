package testenv

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that this thread has used. Unlike getrusage it is exact within the turn that the thread has.
func threadTime(t testing.TB) time.Duration {
	var now unix.Timespec
	Check(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
	return time.Duration(now.Nano())
}
