package deadline

import (
	"sync/atomic"
	"time"
)

// elapsed is the machine's uptime, suspend included, without a system call: the
// monotonic time, which the process can read by itself, plus the time the machine
// has been asleep. Only a suspend changes the latter, and a suspend also moves the
// wall clock against the monotonic one. So whenever these two have drifted apart, by
// a suspend, a step or the slewing of the wall clock, the system is asked. Safe for
// concurrent use; never runs backwards.
type elapsed struct {
	read   func() (wall, mono int64) // ns; of one instant
	uptime func() int64              // ns; the system's answer
	asleep atomic.Int64              // ns: uptime minus monotonic time
	ahead  atomic.Int64              // ns: wall minus monotonic time when the system was last asked
}

const (
	// elapsedSlack is how far the two clocks may drift before the system is asked, in ns. A
	// suspend takes longer.
	elapsedSlack = int64(100 * time.Microsecond)
	// elapsedError is how far elapsed may be behind the system's answer, in ns. It is never ahead.
	elapsedError = elapsedSlack / 2
)

func newElapsed(read func() (wall, mono int64), uptime func() int64) *elapsed {
	e := &elapsed{read: read, uptime: uptime}
	e.asleep.Store(-1 << 62)
	for !e.ask() {
	}
	return e
}

// processClocks are the wall and monotonic clock as the process reads them.
func processClocks() func() (wall, mono int64) {
	base := time.Now()
	return func() (wall, mono int64) {
		t := time.Now()
		return t.UnixNano(), int64(t.Sub(base))
	}
}

func (e *elapsed) now() int64 {
	wall, mono := e.read()
	if drift := wall - mono - e.ahead.Load(); drift > elapsedSlack || drift < -elapsedSlack {
		e.ask()
	}
	return mono + e.asleep.Load()
}

// ask asks the system how long the machine has been asleep. It uses the answer only if that
// came quickly, as then the time it took is less than the slack and does not matter.
// Otherwise the next call of now asks again.
func (e *elapsed) ask() (taken bool) {
	_, before := e.read()
	up := e.uptime()
	wall, mono := e.read()
	if mono-before > elapsedError {
		return false
	}
	for asleep := e.asleep.Load(); up-mono > asleep+elapsedSlack; asleep = e.asleep.Load() {
		if e.asleep.CompareAndSwap(asleep, up-mono) {
			break
		}
	}
	e.ahead.Store(wall - mono)
	return true
}
