package deadline

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// uptime is the time since boot, suspend included (CLOCK_BOOTTIME).
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("broker: clock_gettime(CLOCK_BOOTTIME): " + err.Error())
	}
	return time.Duration(ts.Nano())
}

// bootID identifies the present boot of the machine, "" if that is unknown.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
