package node

import (
	"cmp"
	"math"

	"go.uber.org/zap"

	"curfew/broker/memory"
)

// filesReserved is the number of file descriptors kept for the store, Redis and alerts.
const filesReserved = 64

// fileShares is how many connections of each kind are allowed, so that the reserve is left.
type fileShares struct{ amqp, http, ops int }

// The most connections of management API and dashboard, and of metrics and health.
const (
	mostHTTP = 256
	mostOps  = 64
)

// openFiles divides the file descriptors that the process may open (ulimit -n).
func openFiles() (fileShares, int) {
	files := cmp.Or(memory.FilesLimit(), math.MaxInt32) // no limit, or an unknown one
	return sharesOf(files), files
}

// connectionLimit lowers the limit on AMQP connections to what the process may open, so that
// clients cannot use up the store's file descriptors.
func connectionLimit(asked int, log *zap.Logger) int {
	s, files := openFiles()
	if s.amqp >= asked {
		return asked
	}
	log.Warn("fewer connections than CURFEW_MAX_CONNECTIONS: raise the limit on open files (ulimit -n)",
		zap.Int("connections", s.amqp), zap.Int("asked", asked), zap.Int("open_files", files))
	return s.amqp
}

func sharesOf(files int) fileShares {
	left := max(files-filesReserved, 4)
	s := fileShares{http: max(min(left/8, mostHTTP), 1), ops: max(min(left/16, mostOps), 1)}
	s.amqp = left - s.http - s.ops
	return s
}
