package scheduler

import "curfew/broker/deadline"

// pageCap makes a page 2048 bytes, a size the Go allocator serves without waste.
const pageCap = 127

// page holds up to pageCap shadows in order, 16 bytes each, without pointers, so
// that the garbage collector passes them by.
type page struct {
	base deadline.Instant // the earliest deadline the page can hold
	n    int32
	last int32           // where the last insertion was
	key  [pageCap]uint64 // deadline minus base, ascending; the low queueBits are the queue's number
	seq  [pageCap]uint64
}

const (
	queueBits = 24
	// span is how much later than base a page's last deadline may be: 12 days.
	span = 1<<(64-queueBits) - 1
)

func (p *page) len() int { return int(p.n) }

// at is a deadline minus base.
func (p *page) at(i int) deadline.Instant { return deadline.Instant(p.key[i] >> queueBits) }

// queue is a queue's number in queueNumbers.
func (p *page) queue(i int) uint32 { return uint32(p.key[i] & (1<<queueBits - 1)) }

func (p *page) deadline(i int) deadline.Instant { return p.base + p.at(i) }

func (p *page) shadow(i int, q *queueNumbers) deadline.Ref {
	return deadline.Ref{Deadline: p.deadline(i), Queue: q.id(p.queue(i)), Seq: p.seq[i]}
}

// search returns the place of s, or the one it would have.
func (p *page) search(s deadline.Ref, q *queueNumbers) (i int, found bool) {
	if s.Deadline < p.base {
		return 0, false
	}
	if s.Deadline > p.base+span {
		return p.len(), false
	}
	at := s.Deadline - p.base
	lo, hi := 0, p.len()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if p.at(mid) < at || p.at(mid) == at && p.before(mid, s, q) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, p.is(lo, s, q)
}

// placeOf is search for a shadow that usually belongs right after the last insertion.
func (p *page) placeOf(s deadline.Ref, q *queueNumbers) (i int, found bool) {
	i = int(p.last) + 1
	if i <= p.len() && p.less(i-1, s, q) && (i == p.len() || p.deadline(i) > s.Deadline) {
		return i, false
	}
	return p.search(s, q)
}

// less reports whether entry i comes before s.
func (p *page) less(i int, s deadline.Ref, q *queueNumbers) bool {
	d := p.deadline(i)
	return d < s.Deadline || d == s.Deadline && p.before(i, s, q)
}

// is reports whether entry i is s; there may be no entry i.
func (p *page) is(i int, s deadline.Ref, q *queueNumbers) bool {
	return i < p.len() && p.deadline(i) == s.Deadline && p.seq[i] == s.Seq && q.id(p.queue(i)) == s.Queue
}

// before reports whether entry i, which has the deadline of s, comes before it.
func (p *page) before(i int, s deadline.Ref, q *queueNumbers) bool {
	if id := q.id(p.queue(i)); id != s.Queue {
		return id < s.Queue
	}
	return p.seq[i] < s.Seq
}

// due counts the entries whose deadline is <= until.
func (p *page) due(until deadline.Instant) int {
	if until < p.base {
		return 0
	}
	if until-p.base >= span {
		return p.len()
	}
	at := until - p.base
	lo, hi := 0, p.len()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if p.at(mid) <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// coverAlso moves the base of the page, if need be, so that it can hold a deadline, too;
// false when that is too far from the others.
func (p *page) coverAlso(at deadline.Instant) bool {
	if p.n == 0 {
		p.base = at - span/2
		return true
	}
	if at >= p.base && at <= p.base+span {
		return true
	}
	first, last := min(at, p.deadline(0)), max(at, p.deadline(p.len()-1))
	if last-first > span {
		return false
	}
	p.rebase(first - (span-(last-first))/2)
	return true
}

func (p *page) rebase(base deadline.Instant) {
	shift := uint64(p.base-base) << queueBits // modulo 2^64, as are the sums
	for i := range p.key[:p.n] {
		p.key[i] += shift
	}
	p.base = base
}

// insert puts an entry at i. The page reaches its deadline and is not full.
func (p *page) insert(i int, at deadline.Instant, queue uint32, seq uint64) {
	n := p.len()
	copy(p.key[i+1:n+1], p.key[i:n])
	copy(p.seq[i+1:n+1], p.seq[i:n])
	p.key[i], p.seq[i] = uint64(at-p.base)<<queueBits|uint64(queue), seq
	p.n, p.last = p.n+1, int32(i)
}

// remove takes out the entries [from, to).
func (p *page) remove(from, to int) {
	copy(p.key[from:], p.key[to:p.n])
	copy(p.seq[from:], p.seq[to:p.n])
	p.n -= int32(to - from)
}

// moveTail appends the entries from i on to another page, which reaches them and
// has room.
func (p *page) moveTail(i int, to *page) {
	shift := uint64(p.base-to.base) << queueBits
	for k, key := range p.key[i:p.n] {
		to.key[to.len()+k] = key + shift
	}
	copy(to.seq[to.n:], p.seq[i:p.n])
	to.n += p.n - int32(i)
	p.n = int32(i)
}

// takes moves all entries of the page after this one here, and empties that page; false
// if that would leave little room.
func (p *page) takes(behind *page) bool {
	if p.n+behind.n > pageCap*3/4 || !p.coverAlso(behind.deadline(behind.len()-1)) {
		return false
	}
	behind.moveTail(0, p)
	return true
}
