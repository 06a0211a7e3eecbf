//go:build !linux

package deadline

import "time"

var started = time.Now()

// uptime is the monotonic time since the process started. Where it does not include
// suspend, deadlines that pass during a suspend fire late, never early.
func uptime() time.Duration { return time.Since(started) }

// bootID is unknown here: every start counts as one after a reboot.
func bootID() string { return "" }
