package memory

import (
	"bytes"
	"os"
	"strconv"
	"sync"
)

// statm stays open: it is read up to four times a second.
var statm = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/statm") })

// memoryInUse is the process's resident memory in bytes, without pages backed by files, which
// the kernel can reclaim.
func memoryInUse() int64 {
	f, err := statm()
	if err != nil {
		return 0
	}
	var line [256]byte
	n, _ := f.ReadAt(line[:], 0)
	fields := bytes.Fields(line[:n]) // in pages: size, resident, shared, ...
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}
