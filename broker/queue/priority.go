package queue

import "slices"

// priorityEntries are the entries of one priority in the order of their numbers.
type priorityEntries struct {
	next  uint64  // the next number to be given
	head  uint64  // no ready entry is below it
	first uint64  // index of the page dir[0]
	dir   []*page // nil where all of a page's entries are gone; dir[0] is not
	ready int
}

// place is where a number's entry is, found once per operation.
type place struct {
	number uint64
	page   *page
	chunk  *chunk
}

func (at place) entry() *entry { return &at.chunk.entries[at.number%chunkEntries] }

// pageOf is nil if all entries of the number's page are gone.
func (l *priorityEntries) pageOf(number uint64) *page {
	i := number>>pageShift - l.first // wraps below first
	if i >= uint64(len(l.dir)) {
		return nil
	}
	return l.dir[i]
}

// find returns ok false if the number is gone or was never given.
func (l *priorityEntries) find(number uint64) (at place, ok bool) {
	at.number, at.page = number, l.pageOf(number)
	if at.page == nil {
		return at, false
	}
	at.chunk = at.page.chunks[slot(number)]
	return at, at.chunk != nil && at.entry().state != gone
}

// add places a ready entry at number, which is l.next or higher.
func (l *priorityEntries) add(number uint64, m Message, sp *spares) place {
	at := l.makePlace(number, sp)
	*at.entry() = entry{pos: m.Pos, expiresAt: m.ExpiresAt, bytes: m.Bytes, flags: m.Flags & publicFlags}
	at.chunk.live++
	l.next = number + 1
	l.setReady(at)
	return at
}

func (l *priorityEntries) makePlace(number uint64, sp *spares) place {
	pg := l.pageOf(number)
	if pg == nil {
		pg = l.makePage(number>>pageShift, sp)
	}
	c := &pg.chunks[slot(number)]
	if *c == nil {
		*c = sp.takeChunk()
		pg.used++
	}
	return place{number, pg, *c}
}

func (l *priorityEntries) makePage(index uint64, sp *spares) *page {
	if len(l.dir) == 0 {
		l.first = index
	} else if index < l.first { // of a message that outlived a purge
		l.dir = slices.Insert(l.dir, 0, make([]*page, l.first-index)...)
		l.first = index
	}
	for uint64(len(l.dir)) <= index-l.first {
		l.dir = append(l.dir, nil)
	}
	pg := sp.takePage()
	l.dir[index-l.first] = pg
	return pg
}

// setReady turns an entry of any other state into a ready one.
func (l *priorityEntries) setReady(at place) {
	at.entry().state = Ready
	at.chunk.ready[at.number%chunkEntries/64] |= 1 << (at.number % 64)
	at.page.ready[slot(at.number)/64] |= 1 << (slot(at.number) % 64)
	at.page.counts[slot(at.number)]++
	l.head = min(l.head, at.number)
	l.ready++
}

// unready takes a ready entry out of the bitmaps; the caller gives it a state.
func (l *priorityEntries) unready(at place) {
	at.chunk.ready[at.number%chunkEntries/64] &^= 1 << (at.number % 64)
	if at.page.counts[slot(at.number)]--; at.page.counts[slot(at.number)] == 0 {
		at.page.ready[slot(at.number)/64] &^= 1 << (slot(at.number) % 64)
	}
	l.ready--
}

// firstReady is the ready entry with the lowest number. There must be one. It skips 64 entries,
// 64 chunks or a whole page in one step, so an old message in front of millions that are gone
// costs a few steps each time it comes back.
func (l *priorityEntries) firstReady() place {
	n := max(l.head, l.first<<pageShift)
	for {
		if pg := l.dir[n>>pageShift-l.first]; pg != nil {
			if found, ok := pg.firstReady(n); ok {
				l.head = found
				return place{found, pg, pg.chunks[slot(found)]}
			}
		}
		n = (n>>pageShift + 1) << pageShift
	}
}

// release notes that an entry is gone. A chunk is freed with its last entry, except the one that
// the next number falls into: a queue that is emptied as fast as it is filled keeps that one.
func (l *priorityEntries) release(at place, sp *spares) {
	if at.chunk.live--; at.chunk.live == 0 && at.number>>chunkBits != l.next>>chunkBits {
		l.dropChunk(at, sp)
	}
}

func (l *priorityEntries) dropChunk(at place, sp *spares) {
	sp.putChunk(at.chunk)
	at.page.chunks[slot(at.number)] = nil
	if at.page.used--; at.page.used > 0 {
		return
	}
	sp.page = at.page
	l.dir[at.number>>pageShift-l.first] = nil
	l.trim()
}

// trim cuts the absent pages off the front of the directory.
func (l *priorityEntries) trim() {
	absent := 0
	for absent < len(l.dir) && l.dir[absent] == nil {
		absent++
	}
	l.first += uint64(absent)
	l.dir = slices.Delete(l.dir, 0, absent)
	if cap(l.dir) > 16 && len(l.dir) < cap(l.dir)/4 {
		l.dir = slices.Clone(l.dir)
	}
}

// shrink frees an empty tail chunk, and the directory if nothing else is in it.
func (l *priorityEntries) shrink(sp *spares) {
	if at, _ := l.find(l.next); at.chunk != nil && at.chunk.live == 0 {
		l.dropChunk(at, sp)
	}
	if len(l.dir) == 0 {
		l.dir = nil
	}
}

// from calls fn with the entries from a number on, in order, until fn returns false, and reports
// whether it reached the end. fn may settle the entry that it is called with, and no other.
func (l *priorityEntries) from(number uint64, fn func(at place) bool) bool {
	for at, ok := l.nextChunk(number); ok; at, ok = l.nextChunk(at.number) {
		for end := (at.number>>chunkBits + 1) << chunkBits; at.number < end; at.number++ {
			if at.entry().state != gone && !fn(at) {
				return false
			}
		}
	}
	return true
}

// back is from in the other direction: it begins at number and goes down.
func (l *priorityEntries) back(number uint64, fn func(at place) bool) bool {
	number = min(number, l.next-1)
	for lowest := max(1, l.first<<pageShift); number >= lowest; {
		pg := l.pageOf(number)
		start := number >> pageShift << pageShift
		if pg != nil {
			start = number >> chunkBits << chunkBits
			if c := pg.chunks[slot(number)]; c != nil && !backChunk(place{number, pg, c}, max(start, 1), fn) {
				return false
			}
		}
		if start == 0 {
			return true
		}
		number = start - 1
	}
	return true
}

func backChunk(at place, lowest uint64, fn func(at place) bool) bool {
	for ; at.number >= lowest; at.number-- {
		if at.entry().state != gone && !fn(at) {
			return false
		}
	}
	return true
}
