package queue

import "slices"

// lane is the messages of one priority in the order of their numbers.
type lane struct {
	next  uint64  // the next number to be given
	head  uint64  // no ready entry stands below it
	first uint64  // index of the page dir[0]
	dir   []*page // nil where all of a page's entries are gone; dir[0] is not
	ready int
}

// chunk is nil if all entries of the number's chunk are gone.
func (l *lane) chunk(number uint64) *chunk {
	i := number>>pageShift - l.first // wraps below first
	if i >= uint64(len(l.dir)) || l.dir[i] == nil {
		return nil
	}
	return l.dir[i].chunks[slot(number)]
}

// entry is nil if the number is gone or was never given.
func (l *lane) entry(number uint64) *entry {
	c := l.chunk(number)
	if c == nil || c.at(number).state == gone {
		return nil
	}
	return c.at(number)
}

// add places a ready entry at number, which is l.next or above it.
func (l *lane) add(number uint64, m Message, sp *spares) {
	c := l.makeChunk(number, sp)
	*c.at(number) = entry{
		pos: m.Pos, expiresAt: m.ExpiresAt, bytes: m.Bytes,
		flags: m.Flags & publicFlags, state: gone,
	}
	c.live++
	l.next = number + 1
	l.setReady(number)
}

func (l *lane) makeChunk(number uint64, sp *spares) *chunk {
	if c := l.chunk(number); c != nil {
		return c
	}
	p := number >> pageShift
	if len(l.dir) == 0 {
		l.first = p
	}
	if grow := p - l.first + 1; grow > uint64(len(l.dir)) {
		l.dir = append(l.dir, make([]*page, grow-uint64(len(l.dir)))...)
	}
	at := &l.dir[p-l.first]
	if *at == nil {
		*at = sp.takePage()
	}
	c := sp.takeChunk()
	(*at).chunks[slot(number)] = c
	(*at).used++
	return c
}

// setReady turns an entry of any other state into a ready one.
func (l *lane) setReady(number uint64) {
	pg := l.dir[number>>pageShift-l.first]
	c := pg.chunks[slot(number)]
	c.at(number).state = Ready
	setBit(c.ready[:], uint(number%chunkEntries))
	setBit(pg.ready[:], slot(number))
	l.head = min(l.head, number)
	l.ready++
}

// unready takes a ready entry out of the bitmaps; the caller gives it a state.
func (l *lane) unready(number uint64) {
	pg := l.dir[number>>pageShift-l.first]
	c := pg.chunks[slot(number)]
	clearBit(c.ready[:], uint(number%chunkEntries))
	if !c.anyReady() {
		clearBit(pg.ready[:], slot(number))
	}
	l.ready--
}

// firstReady is the lowest ready number. The lane must have one. What it
// skips, it skips by 64 entries, by 64 chunks and by whole pages, so one old
// message in front of millions that are gone costs a few steps each time it
// comes back.
func (l *lane) firstReady() uint64 {
	n := max(l.head, l.first<<pageShift)
	for {
		if found, ok := l.readyInPage(n); ok {
			l.head = found
			return found
		}
		n = (n>>pageShift + 1) << pageShift
	}
}

// readyInPage looks for a ready number in [from, end of its page).
func (l *lane) readyInPage(from uint64) (uint64, bool) {
	pg := l.dir[from>>pageShift-l.first]
	if pg == nil {
		return 0, false
	}
	s := slot(from)
	if c := pg.chunks[s]; c != nil {
		if i, ok := nextBit(c.ready[:], uint(from%chunkEntries)); ok {
			return from&^(chunkEntries-1) | uint64(i), true
		}
	}
	s, ok := nextBit(pg.ready[:], s+1)
	if !ok {
		return 0, false
	}
	i, _ := nextBit(pg.chunks[s].ready[:], 0)
	return from>>pageShift<<pageShift | uint64(s)<<chunkBits | uint64(i), true
}

// release is told that an entry is gone. With the last entry of a chunk the
// chunk goes, save the one the next number falls into: a queue that is emptied
// as fast as it is filled keeps that one.
func (l *lane) release(number uint64, sp *spares) {
	c := l.chunk(number)
	if c.live--; c.live == 0 && number>>chunkBits != l.next>>chunkBits {
		l.dropChunk(number, sp)
	}
}

func (l *lane) dropChunk(number uint64, sp *spares) {
	at := &l.dir[number>>pageShift-l.first]
	pg := *at
	sp.putChunk(pg.chunks[slot(number)])
	pg.chunks[slot(number)] = nil
	if pg.used--; pg.used > 0 {
		return
	}
	sp.putPage(pg)
	*at = nil
	l.trim()
}

// trim cuts the absent pages off the front of the directory.
func (l *lane) trim() {
	absent := 0
	for absent < len(l.dir) && l.dir[absent] == nil {
		absent++
	}
	l.first += uint64(absent)
	l.dir = slices.Delete(l.dir, 0, absent)
	if cap(l.dir) > 64 && len(l.dir) < cap(l.dir)/4 {
		l.dir = slices.Clone(l.dir)
	}
}

// shrink lets go of an empty tail chunk and of unused directory space.
func (l *lane) shrink(sp *spares) {
	if c := l.chunk(l.next); c != nil && c.live == 0 {
		l.dropChunk(l.next, sp)
	}
	l.dir = slices.Clip(l.dir)
	if len(l.dir) == 0 {
		l.dir = nil
	}
}

// from calls fn with the entries from a number on, in order, until fn returns
// false. fn may remove the entry it is called with and no other.
func (l *lane) from(number uint64, fn func(number uint64, e *entry) bool) bool {
	number = max(number, l.first<<pageShift)
	for number < l.next {
		c := l.chunk(number)
		if c == nil {
			number = l.afterHole(number)
			continue
		}
		end := min(l.next, (number>>chunkBits+1)<<chunkBits)
		for ; number < end; number++ {
			if e := c.at(number); e.state != gone && !fn(number, e) {
				return false
			}
		}
	}
	return true
}

// afterHole is the start of the next chunk or page that may be present.
func (l *lane) afterHole(number uint64) uint64 {
	if i := number>>pageShift - l.first; i >= uint64(len(l.dir)) || l.dir[i] == nil {
		return (number>>pageShift + 1) << pageShift
	}
	return (number>>chunkBits + 1) << chunkBits
}
