//go:build unix

package memory

import (
	"math"

	"golang.org/x/sys/unix"
)

// DiskSpace is the free space for this process, and the size, of dir's file system, in bytes.
func DiskSpace(dir string) (free, all int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil
}

// FilesLimit is how many files the process may have open, 0 if that is unknown.
func FilesLimit() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(l.Cur, math.MaxInt32))
}
