package memory

import "golang.org/x/sys/windows"

// DiskSpace is the free space for this process, and the size, of dir's disk, in bytes.
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

// FilesLimit is 0: Windows has no limit on open files and sockets.
func FilesLimit() int { return 0 }
