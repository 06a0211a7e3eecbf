package store

import "slices"

// numbers is an ascending set of segment numbers. What is added is mostly the number that
// was added last.
type numbers []uint32

func (s *numbers) add(number uint64) {
	n := uint32(number)
	if k := len(*s); k > 0 && (*s)[k-1] == n {
		return
	}
	if at, found := slices.BinarySearch(*s, n); !found {
		*s = slices.Insert(*s, at, n)
	}
}

func (s numbers) has(number uint64) bool {
	_, found := slices.BinarySearch(s, uint32(number))
	return found
}

// span is a run of consecutive segment numbers.
type span struct{ first, count uint32 }

// spans is an ascending set of segment numbers, kept as runs.
type spans []span

// add adds a number that is higher than all others.
func (s *spans) add(number uint64) {
	if k := len(*s); k > 0 && (*s)[k-1].first+(*s)[k-1].count == uint32(number) {
		(*s)[k-1].count++
		return
	}
	*s = append(*s, span{uint32(number), 1})
}

// find returns the index of the run that contains the number, or else of the run after it.
func (s spans) find(number uint64) (int, bool) {
	at, _ := slices.BinarySearchFunc(s, uint32(number), func(r span, n uint32) int {
		if r.first+r.count <= n {
			return -1
		}
		return 1
	})
	return at, at < len(s) && s[at].first <= uint32(number)
}

func (s *spans) remove(number uint64) {
	at, found := s.find(number)
	if !found {
		return
	}
	r, n := (*s)[at], uint32(number)
	before, after := span{r.first, n - r.first}, span{n + 1, r.first + r.count - n - 1}
	switch {
	case before.count > 0 && after.count > 0:
		(*s)[at] = before
		*s = slices.Insert(*s, at+1, after)
	case before.count > 0:
		(*s)[at] = before
	case after.count > 0:
		(*s)[at] = after
	default:
		*s = slices.Delete(*s, at, at+1)
	}
}
