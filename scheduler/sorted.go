package scheduler

import (
	"slices"
	"sort"

	"curfew/broker/deadline"
)

// pageCap is how many entries a page has at most, which take 4 KiB.
const pageCap = 256

// entry is a shadow within its queue. It has no pointers, so the garbage collector passes pages by.
type entry struct {
	at  deadline.Instant
	seq uint64
}

func (e entry) before(o entry) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// sorted keeps the shadows of a queue that wait for their deadlines in order: a list of pages, none of which is empty.
//
// A full page is split in half. But one at whose end an entry belongs stays full, and the entry begins the next page: deadlines that come in order, as
// those of a queue with one TTL do, leave full pages behind.
type sorted struct {
	pages       []page
	length      int
	added, gone int // the pages of the last insertion and removal: the next is usually there, too
}

// page is a part of the entries.
type page struct {
	low     entry // no entry of the page is less, and every one of earlier pages is; of the first page it may be any
	entries []entry
}

// find returns the page that an entry is in, if it is in any, or would be in.
func (s *sorted) find(e entry, hint int) int {
	if hint < len(s.pages) && !e.before(s.pages[hint].low) && (hint+1 == len(s.pages) || e.before(s.pages[hint+1].low)) {
		return hint
	}
	return max(sort.Search(len(s.pages), func(i int) bool { return e.before(s.pages[i].low) })-1, 0)
}

// search returns the place of an entry in the page, or the one it would have.
func (p *page) search(e entry) (i int, found bool) {
	n := len(p.entries)
	if n > 0 && p.entries[n-1].before(e) { // as most insertions
		return n, false
	}
	i = sort.Search(n, func(i int) bool { return !p.entries[i].before(e) })
	return i, i < n && p.entries[i] == e
}

// insert adds an entry; it does nothing if that exists already.
func (s *sorted) insert(e entry) {
	switch {
	case len(s.pages) > 0:
	case cap(s.pages) > 0: // with the memory of the last one
		s.pages = s.pages[:1]
		s.pages[0] = page{e, s.pages[0].entries[:0]}
	default:
		s.pages = append(s.pages, page{low: e})
	}
	at := s.find(e, s.added)
	i, found := s.pages[at].search(e)
	if found {
		return
	}
	if len(s.pages[at].entries) == pageCap {
		cut := pageCap / 2
		if i == pageCap {
			cut = i
		}
		at, i = s.split(at, cut, i, e)
	}
	p := &s.pages[at]
	p.entries = slices.Insert(p.entries, i, e)
	s.length++
	s.added = at
}

// split moves the entries of a page from cut on to a new one behind it, and returns where an entry belongs then that belonged at i.
func (s *sorted) split(at, cut, i int, e entry) (to, place int) {
	moved := append(make([]entry, 0, pageCap), s.pages[at].entries[cut:]...)
	low := e
	if len(moved) > 0 {
		low = moved[0]
	}
	s.pages[at].entries = s.pages[at].entries[:cut]
	s.pages = slices.Insert(s.pages, at+1, page{low, moved})
	if i > cut || len(moved) == 0 {
		return at + 1, i - cut
	}
	return at, i
}

// remove takes out some entries, as far as they are there.
func (s *sorted) remove(some []deadline.Ref) {
	for len(some) > 0 && s.length > 0 {
		at := s.find(entry{some[0].Deadline, some[0].Seq}, s.gone)
		all := s.pages[at].entries
		i, found := s.pages[at].search(entry{some[0].Deadline, some[0].Seq})
		n := 1
		if found { // those that directly follow it in its page go with it
			for n < len(some) && i+n < len(all) && all[i+n] == (entry{some[n].Deadline, some[n].Seq}) {
				n++
			}
			s.cut(at, i, i+n)
			s.gone = at
		}
		some = some[n:]
	}
}

// cut removes the entries [from, to) of a page. A page that has become small is merged with a neighbour, unless the result would soon have to be split.
func (s *sorted) cut(at, from, to int) {
	p := &s.pages[at]
	p.entries = slices.Delete(p.entries, from, to)
	s.length -= to - from
	switch n := len(p.entries); {
	case n == 0:
		s.drop(at)
	case n < pageCap/4:
		for _, left := range []int{at, at - 1} {
			if left >= 0 && left+1 < len(s.pages) && len(s.pages[left].entries)+len(s.pages[left+1].entries) <= pageCap*3/4 {
				s.pages[left].entries = append(s.pages[left].entries, s.pages[left+1].entries...)
				s.drop(left + 1)
				return
			}
		}
	}
}

func (s *sorted) drop(at int) {
	switch {
	case at > 0:
		s.pages = slices.Delete(s.pages, at, at+1)
	case len(s.pages) == 1:
		s.pages = s.pages[:0]
	default:
		s.pages[0] = page{}
		s.pages = s.pages[1:]
	}
}

// first returns the deadline of the least entry; never if there is none.
func (s *sorted) first() deadline.Instant {
	if s.length == 0 {
		return never
	}
	return s.pages[0].entries[0].at
}

// due counts the entries of a page whose deadline is <= until.
func (p *page) due(until deadline.Instant) int {
	return sort.Search(len(p.entries), func(i int) bool { return p.entries[i].at > until })
}

// count adds to each number in out how many entries have their deadline up to the instant in until, which are in order.
func (s *sorted) count(until []deadline.Instant, out []int64) {
	before := 0
	for i := range s.pages {
		if len(until) == 0 {
			return
		}
		p := &s.pages[i]
		for last := p.entries[len(p.entries)-1].at; len(until) > 0 && until[0] < last; until, out = until[1:], out[1:] {
			out[0] += int64(before + p.due(until[0]))
		}
		before += len(p.entries)
	}
	for i := range until {
		out[i] += int64(before)
	}
}

// after calls fn with the entries that come after one, in order, until it returns false.
func (s *sorted) after(e entry, fn func(entry) bool) {
	if s.length == 0 {
		return
	}
	at := s.find(e, s.gone)
	i, found := s.pages[at].search(e)
	if found {
		i++
	}
	for _, p := range s.pages[at:] {
		for _, e := range p.entries[i:] {
			if !fn(e) {
				return
			}
		}
		i = 0
	}
}
