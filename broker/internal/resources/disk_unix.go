//go:build unix

package resources

import "golang.org/x/sys/unix"

// DiskSpace is what the file system dir is in has free for this process and in
// all, in bytes.
func DiskSpace(dir string) (free, all int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil
}
