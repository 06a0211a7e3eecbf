package queue

import "math/bits"

// Sampling is a walk over the ready messages in the order of delivery that stops
// at every Step-th. The zero value begins at the head and stops at each.
type Sampling struct {
	Step int // 1 or more; 0 is 1

	passed int    // ready messages behind the walk
	stop   int    // ready messages before the one to stop at next
	done   int    // priorities done, highest first
	number uint64 // where the walk is in the current priority
}

// Sample goes on with a walk for at most chunks chunks of 128 messages. It calls fn with each
// message that it stops at, and with how many ready ones are ahead of that. It reads the chunks
// that it stops in, and one byte for each of the others. more is false at the end. The queue may
// change between two calls; what the walk has passed counts as it was at the time.
func (q *entries) Sample(s *Sampling, chunks int, fn func(ahead int, seq Seq, m Message)) (more bool) {
	step := max(s.Step, 1)
	for ; s.done < len(q.byPriority); s.done, s.number = s.done+1, 0 {
		priority := len(q.byPriority) - 1 - s.done
		l := &q.byPriority[priority]
		for s.number = max(s.number, l.first<<pageShift); s.number < l.next; {
			pg := l.pageOf(s.number)
			if pg == nil || pg.ready == [pageChunks / 64]uint64{} {
				s.number = (s.number>>pageShift + 1) << pageShift
				continue
			}
			if chunks == 0 {
				return true
			}
			chunks--
			if ready := int(pg.counts[slot(s.number)]); s.stop >= s.passed+ready {
				s.passed += ready
			} else {
				c := pg.chunks[slot(s.number)]
				s.chunk(c, step, func(ahead, i int) {
					fn(ahead, makeSeq(uint8(priority), s.number&^(chunkEntries-1)|uint64(i)), c.entries[i].message())
				})
			}
			s.number = (s.number>>chunkBits + 1) << chunkBits
		}
	}
	return false
}

// chunk calls fn with the index of each entry to stop at.
func (s *Sampling) chunk(c *chunk, step int, fn func(ahead, i int)) {
	for i, w := range c.ready {
		count := bits.OnesCount64(w)
		for ; s.stop < s.passed+count; s.stop += step {
			fn(s.stop, i*64+nthBit(w, s.stop-s.passed))
		}
		s.passed += count
	}
}

// nthBit is the index of the set bit of w with n set bits below it.
func nthBit(w uint64, n int) int {
	for ; n > 0; n-- {
		w &= w - 1
	}
	return bits.TrailingZeros64(w)
}
