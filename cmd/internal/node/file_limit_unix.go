//go:build unix

package node

import (
	"math"
	"syscall"
)

// filesLimit is how many file descriptors the process may open (ulimit -n).
func filesLimit() uint64 {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return math.MaxUint64
	}
	return files.Cur
}
