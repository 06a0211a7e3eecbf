package broker

import (
	"os"

	"curfew/broker/memory"
)

// Signs are numbers by which one sees that the broker will be, or has been, in trouble.
type Signs struct {
	LettersWaiting      int    // dead letters on their way
	LettersDropped      uint64 // since the start, that no queue took
	PoliciesNotInForce  int
	DiskFree, DiskLimit int64 // bytes; both are 0 if the broker does not look at a disk
}

// SignsOf are those of a broker now.
func SignsOf(b *Broker) Signs {
	s := Signs{
		LettersWaiting: int(max(b.env.Waiting.Load(), 0)), LettersDropped: b.env.Counters.DeadLettersLost.Load(), PoliciesNotInForce: b.policiesNotInForce(),
	}
	if dir := b.opts.Store.Dir; dir != "" {
		if free, _, err := memory.DiskSpace(dir); err == nil {
			s.DiskFree, s.DiskLimit = free, b.opts.DiskFreeLimit
		}
	}
	return s
}

// OpenFiles is the share of the file descriptors of this process that are in use; 0 where that cannot be found out.
func OpenFiles() float64 {
	open, err := os.ReadDir("/proc/self/fd")
	if most := memory.FilesLimit(); err == nil && most > 0 {
		return float64(len(open)) / float64(most)
	}
	return 0
}
