package main

import (
	"syscall"

	"go.uber.org/zap"
)

// filesReserved are the file descriptors kept for the store, Redis and the ops
// listener when connections use up the rest.
const filesReserved = 64

// connectionLimit lowers the limit on connections to what the process may open
// (ulimit -n), so that too many clients take no descriptor from the store.
func connectionLimit(asked int, log *zap.Logger) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return asked
	}
	most := connectionsWithin(files.Cur)
	if most >= asked {
		return asked
	}
	log.Warn("fewer connections than CURFEW_MAX_CONNECTIONS: raise the limit on open files (ulimit -n)",
		zap.Int("connections", most), zap.Int("asked", asked), zap.Uint64("open_files", files.Cur))
	return most
}

func connectionsWithin(files uint64) int {
	return int(max(int64(min(files, 1<<31))-filesReserved, 1))
}
