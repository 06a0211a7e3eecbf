package resources

import "golang.org/x/sys/windows"

// DiskSpace is what the disk dir is on has free for this process and in all, in bytes.
func DiskSpace(dir string) (free, all int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var available, total uint64
	if err := windows.GetDiskFreeSpaceEx(name, &available, &total, nil); err != nil {
		return 0, 0, err
	}
	return int64(available), int64(total), nil
}

// FilesLimit: Windows has no limit on open files and sockets.
func FilesLimit() int { return 0 }
