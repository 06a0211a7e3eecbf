package server

import "sync"

// Busy connections take buffers from pools, by size, and give them back when the content is
// sent or parsed. So an idle connection holds next to nothing, and a busy one allocates
// nothing. The garbage collector empties the pools.
const (
	buffer4K   = 4 << 10
	buffer64K  = 64 << 10
	buffer256K = 256 << 10
	buffer1M   = 1 << 20
)

var (
	buffers4K   = sync.Pool{New: func() any { return new([buffer4K]byte) }}
	buffers64K  = sync.Pool{New: func() any { return new([buffer64K]byte) }}
	buffers256K = sync.Pool{New: func() any { return new([buffer256K]byte) }}
	buffers1M   = sync.Pool{New: func() any { return new([buffer1M]byte) }}
)

// newBuffer returns an empty buffer of at least that capacity. Buffers above 1 MiB come
// from no pool.
func newBuffer(capacity int) []byte {
	switch {
	case capacity <= buffer4K:
		return buffers4K.Get().(*[buffer4K]byte)[:0]
	case capacity <= buffer64K:
		return buffers64K.Get().(*[buffer64K]byte)[:0]
	case capacity <= buffer256K:
		return buffers256K.Get().(*[buffer256K]byte)[:0]
	case capacity <= buffer1M:
		return buffers1M.Get().(*[buffer1M]byte)[:0]
	}
	return make([]byte, 0, capacity)
}

// recycle gives a buffer back, which nobody may use any more. A buffer that came from no
// pool is left to the garbage collector.
func recycle(b []byte) {
	switch cap(b) {
	case buffer4K:
		buffers4K.Put((*[buffer4K]byte)(b[:buffer4K]))
	case buffer64K:
		buffers64K.Put((*[buffer64K]byte)(b[:buffer64K]))
	case buffer256K:
		buffers256K.Put((*[buffer256K]byte)(b[:buffer256K]))
	case buffer1M:
		buffers1M.Put((*[buffer1M]byte)(b[:buffer1M]))
	}
}

// grownBuffer returns a buffer with the content of b and room for n octets more. b must not
// be used any more.
func grownBuffer(b []byte, n int) []byte {
	grown := append(newBuffer(len(b)+n), b...)
	recycle(b)
	return grown
}
