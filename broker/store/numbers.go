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

// numberSpans are the runs of an ascending set of numbers.
type numberSpans []numberSpan

// Add adds a number above all others.
func (s *numberSpans) Add(number uint64) {
	if last := len(*s) - 1; last >= 0 && uint64((*s)[last].First+(*s)[last].Count) == number {
		(*s)[last].Count++
	} else {
		*s = append(*s, numberSpan{uint32(number), 1})
	}
}

// remove removes a number, which must be in the set.
func (s *numberSpans) remove(n uint32) {
	i := slices.IndexFunc(*s, func(r numberSpan) bool { return n-r.First < r.Count })
	r, rest := (*s)[i], (*s)[i+1:]
	kept := append(numberSpans{}, (*s)[:i]...)
	for _, part := range []numberSpan{{r.First, n - r.First}, {n + 1, r.First + r.Count - n - 1}} {
		if part.Count > 0 {
			kept = append(kept, part)
		}
	}
	*s = append(kept, rest...)
}
