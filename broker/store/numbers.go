package store

import "slices"

// numberSet is an ascending set of segment numbers. What is added is mostly the number that
// was added last.
type numberSet []uint32

// Add adds a number.
func (s *numberSet) Add(number uint64) {
	n := uint32(number)
	if k := len(*s); k > 0 && (*s)[k-1] == n {
		return
	}
	if at, found := slices.BinarySearch(*s, n); !found {
		*s = slices.Insert(*s, at, n)
	}
}

// Has reports whether the number is in the set.
func (s numberSet) Has(number uint64) bool {
	_, found := slices.BinarySearch(s, uint32(number))
	return found
}

// numberSpan is a run of consecutive segment numbers.
type numberSpan struct{ First, Count uint32 }

// numberSpans is an ascending set of segment numbers, kept as runs.
type numberSpans []numberSpan

// Add adds a number that is higher than all others.
func (s *numberSpans) Add(number uint64) {
	if k := len(*s); k > 0 && (*s)[k-1].First+(*s)[k-1].Count == uint32(number) {
		(*s)[k-1].Count++
		return
	}
	*s = append(*s, numberSpan{uint32(number), 1})
}

// find returns the index of the run that contains the number, or else of the run after it.
func (s numberSpans) find(number uint64) (int, bool) {
	at, _ := slices.BinarySearchFunc(s, uint32(number), func(r numberSpan, n uint32) int {
		if r.First+r.Count <= n {
			return -1
		}
		return 1
	})
	return at, at < len(s) && s[at].First <= uint32(number)
}

// Remove removes a number, if it is there.
func (s *numberSpans) Remove(number uint64) {
	at, found := s.find(number)
	if !found {
		return
	}
	r, n := (*s)[at], uint32(number)
	before, after := numberSpan{r.First, n - r.First}, numberSpan{n + 1, r.First + r.Count - n - 1}
	switch {
	case before.Count > 0 && after.Count > 0:
		(*s)[at] = before
		*s = slices.Insert(*s, at+1, after)
	case before.Count > 0:
		(*s)[at] = before
	case after.Count > 0:
		(*s)[at] = after
	default:
		*s = slices.Delete(*s, at, at+1)
	}
}
