package broker

import (
	"bytes"
	"os"
	"strconv"
)

// memoryInUse is the process's resident memory in bytes without what is backed by
// files, which the kernel can take back.
func memoryInUse() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(statm) // in pages: size, resident, shared, ...
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}
