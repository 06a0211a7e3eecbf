//go:build !linux

package clock

import "time"

var started = time.Now()

// uptime is the monotonic time since the process started; where suspend does
// not count in it, deadlines that pass during suspend fire late, never early.
func uptime() time.Duration { return time.Since(started) }

// bootID is not known here: every start counts as after a reboot.
func bootID() string { return "" }
