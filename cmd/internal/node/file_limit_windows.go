package node

import "math"

// filesLimit: Windows has no limit on open files and sockets.
func filesLimit() uint64 { return math.MaxUint64 }
