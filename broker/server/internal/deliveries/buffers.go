package deliveries

import "sync"

// The sizes that come from pools, in octets.
const (
	Size4K   = 4 << 10
	Size64K  = 64 << 10
	Size256K = 256 << 10
	size1M   = 1 << 20
)

var (
	pool4K   = sync.Pool{New: func() any { return new([Size4K]byte) }}
	pool64K  = sync.Pool{New: func() any { return new([Size64K]byte) }}
	pool256K = sync.Pool{New: func() any { return new([Size256K]byte) }}
	pool1M   = sync.Pool{New: func() any { return new([size1M]byte) }}
)

// NewBuffer returns an empty buffer of at least that capacity. Buffers above 1 MiB come from no
// pool.
func NewBuffer(capacity int) []byte {
	switch {
	case capacity <= Size4K:
		return pool4K.Get().(*[Size4K]byte)[:0]
	case capacity <= Size64K:
		return pool64K.Get().(*[Size64K]byte)[:0]
	case capacity <= Size256K:
		return pool256K.Get().(*[Size256K]byte)[:0]
	case capacity <= size1M:
		return pool1M.Get().(*[size1M]byte)[:0]
	}
	return make([]byte, 0, capacity)
}

// RecycleBuffer gives a buffer back. It must not be used afterwards. A buffer that came from no
// pool is left to the garbage collector.
func RecycleBuffer(b []byte) {
	switch cap(b) {
	case Size4K:
		pool4K.Put((*[Size4K]byte)(b[:Size4K]))
	case Size64K:
		pool64K.Put((*[Size64K]byte)(b[:Size64K]))
	case Size256K:
		pool256K.Put((*[Size256K]byte)(b[:Size256K]))
	case size1M:
		pool1M.Put((*[size1M]byte)(b[:size1M]))
	}
}

// Extended returns b with part appended, and gives b back if that took another buffer: four times as
// large, but not beyond most octets unless they are needed.
func Extended(b, part []byte, most int) []byte {
	need := len(b) + len(part)
	if need <= cap(b) {
		return append(b, part...)
	}
	bigger := NewBuffer(max(need, min(4*cap(b), most)))
	// Nothing can preempt a copy, and new pages make it slow: the whole process may wait for it.
	for rest := b; len(rest) > 0; rest = rest[min(len(rest), Size256K):] {
		bigger = append(bigger, rest[:min(len(rest), Size256K)]...)
	}
	RecycleBuffer(b)
	return append(bigger, part...)
}

// grown returns a buffer with the content of b and room for n octets more. b must not be used
// afterwards.
func grown(b []byte, n int) []byte {
	grown := append(NewBuffer(len(b)+n), b...)
	RecycleBuffer(b)
	return grown
}
