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
