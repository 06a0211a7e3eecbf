package load

import (
	"time"

	"golang.org/x/sys/windows"
)

// ownCPU is the processor time this process has used; 0 if that is not known.
func ownCPU() time.Duration {
	var created, ended, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &user); err != nil {
		return 0
	}
	return ticks(kernel) + ticks(user)
}

// ticks is a Filetime as a duration: it counts 100 ns.
func ticks(t windows.Filetime) time.Duration {
	return time.Duration(uint64(t.HighDateTime)<<32|uint64(t.LowDateTime)) * 100
}
