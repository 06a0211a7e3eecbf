package queue

import (
	"math/bits"

	"curfew/broker/deadline"
)

const (
	chunkBits    = 7
	chunkEntries = 1 << chunkBits
	pageBits     = 8
	pageChunks   = 1 << pageBits

	// pageShift takes a number to the index of its page.
	pageShift = chunkBits + pageBits
)

// entry is one message: 24 bytes without a pointer, so that the garbage
// collector never looks into a chunk.
type entry struct {
	pos        uint64
	expiresAt  deadline.Instant
	bytes      uint32
	deliveries uint16 // that failed; stays at its maximum
	flags      Flags
	state      State
}

func (e *entry) message() Message {
	return Message{Pos: e.pos, ExpiresAt: e.expiresAt, Bytes: e.bytes, Flags: e.flags & publicFlags}
}

// due reports whether its deadline has come.
func (e *entry) due(now deadline.Instant) bool {
	return e.expiresAt != 0 && now >= e.expiresAt
}

// chunk holds the entries of chunkEntries consecutive numbers.
type chunk struct {
	ready   [chunkEntries / 64]uint64 // bit i: entries[i].state == Ready
	live    int                       // entries that are not gone
	entries [chunkEntries]entry
}

// page is a run of chunks. A chunk that holds nothing is absent, so the numbers of messages
// that are long gone cost next to nothing, even if one old message keeps their page.
type page struct {
	ready  [pageChunks / 64]uint64 // bit i: chunks[i] has a ready entry
	used   int                     // chunks present
	counts [pageChunks]uint8       // ready entries of chunks[i]: a walk past them reads no chunk
	chunks [pageChunks]*chunk
}

// firstReady is the lowest ready number at or above from, which is in this page.
func (pg *page) firstReady(from uint64) (uint64, bool) {
	s := slot(from)
	if c := pg.chunks[s]; c != nil {
		if i, ok := nextBit(c.ready[:], uint(from%chunkEntries)); ok {
			return from>>chunkBits<<chunkBits | uint64(i), true
		}
	}
	s, ok := nextBit(pg.ready[:], s+1)
	if !ok {
		return 0, false
	}
	i, _ := nextBit(pg.chunks[s].ready[:], 0)
	return from>>pageShift<<pageShift | uint64(s)<<chunkBits | uint64(i), true
}

// slot is the place of a number's chunk within its page.
func slot(number uint64) uint { return uint(number >> chunkBits % pageChunks) }

// nextBit is the first set bit at or after from; ok is false if there is none.
func nextBit(words []uint64, from uint) (i uint, ok bool) {
	if from >= uint(len(words))*64 {
		return 0, false
	}
	w := from / 64
	rest := words[w] >> (from % 64) << (from % 64)
	for rest == 0 {
		if w++; w == uint(len(words)) {
			return 0, false
		}
		rest = words[w]
	}
	return w*64 + uint(bits.TrailingZeros64(rest)), true
}

// spares are emptied chunks kept for reuse, so that messages flowing through a queue allocate
// nothing. There are at most maxSpares; others are left to the garbage collector.
type spares struct {
	chunks []*chunk
	page   *page // nil or one
}

const maxSpares = 8

func (sp *spares) takeChunk() *chunk {
	last := len(sp.chunks) - 1
	if last < 0 {
		return new(chunk)
	}
	c := sp.chunks[last]
	sp.chunks[last] = nil
	sp.chunks = sp.chunks[:last]
	return c
}

// putChunk needs every entry to be gone: then nothing in the chunk has to be cleared.
func (sp *spares) putChunk(c *chunk) {
	if len(sp.chunks) < maxSpares {
		sp.chunks = append(sp.chunks, c)
	}
}

func (sp *spares) takePage() *page {
	if pg := sp.page; pg != nil {
		sp.page = nil
		return pg
	}
	return new(page)
}
