package store

import "sync/atomic"

const chunkSegments = 256

// table finds a segment by its number without a lock. Numbers only grow, and old segments
// may stay in use for a long time. So it is a directory of chunks: storing a segment writes
// one slot, and the directory is copied once in chunkSegments numbers. The owner's lock
// serializes writers.
type table struct {
	dir atomic.Pointer[directory]
}

type directory struct {
	base   uint64 // number of the first chunk
	chunks []*chunk
}

type chunk struct {
	segments [chunkSegments]atomic.Pointer[segment]
	used     int
}

// get returns the segment with that number, or nil if there is none.
func (t *table) get(number uint64) *segment {
	d := t.dir.Load()
	if d == nil {
		return nil
	}
	at := number/chunkSegments - d.base
	if at >= uint64(len(d.chunks)) || d.chunks[at] == nil {
		return nil
	}
	return d.chunks[at].segments[number%chunkSegments].Load()
}

func (t *table) set(s *segment) {
	c := t.chunk(s.number / chunkSegments)
	c.segments[s.number%chunkSegments].Store(s)
	c.used++
}

// chunk returns the chunk with that number, growing the directory at its end.
func (t *table) chunk(number uint64) *chunk {
	old := t.dir.Load()
	if old == nil {
		old = &directory{base: number}
	}
	if at := number - old.base; at < uint64(len(old.chunks)) && old.chunks[at] != nil {
		return old.chunks[at]
	}
	grown := &directory{base: old.base, chunks: make([]*chunk, max(len(old.chunks), int(number-old.base)+1))}
	copy(grown.chunks, old.chunks)
	c := &chunk{}
	grown.chunks[number-old.base] = c
	t.dir.Store(grown)
	return c
}

// clear removes a segment. A chunk is removed together with its last segment.
func (t *table) clear(number uint64) {
	d := t.dir.Load()
	at := number/chunkSegments - d.base
	c := d.chunks[at]
	c.segments[number%chunkSegments].Store(nil)
	c.used--
	if c.used > 0 || at == uint64(len(d.chunks))-1 {
		return
	}
	t.clearChunk(d, int(at))
}

func (t *table) clearChunk(d *directory, at int) {
	chunks := append([]*chunk(nil), d.chunks...)
	chunks[at] = nil
	base := d.base
	for len(chunks) > 1 && (chunks[0] == nil || chunks[0].used == 0) {
		chunks, base = chunks[1:], base+1
	}
	t.dir.Store(&directory{base: base, chunks: chunks})
}

// each calls fn for every segment in ascending order of numbers, until fn returns false.
func (t *table) each(fn func(*segment) bool) {
	d := t.dir.Load()
	if d == nil {
		return
	}
	for _, c := range d.chunks {
		if c == nil {
			continue
		}
		for i := range c.segments {
			if s := c.segments[i].Load(); s != nil && !fn(s) {
				return
			}
		}
	}
}
