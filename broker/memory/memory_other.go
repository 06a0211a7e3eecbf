//go:build !linux

package memory

import "runtime/metrics"

// memoryInUse is the memory that the Go runtime holds, in bytes. Mapped messages are not
// included.
func memoryInUse() int64 {
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(held)
	return int64(held[0].Value.Uint64() - held[1].Value.Uint64())
}
