//go:build unix

package management

import (
	"math"
	"syscall"
)

// filesLimit is how many files the process may have open; 0 if that is not known.
func filesLimit() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(l.Cur, math.MaxInt32))
}
