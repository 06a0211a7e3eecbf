package exchange

import "slices"

// set is a list of different items, each of which is removed without a search. They are in the order in which they were
// added, until one is removed: the last takes its place. The zero value is empty.
type set[T comparable] struct {
	list []T
	at   map[T]int32 // where each is; nil while there are few
}

// setScan is how long a list is searched one by one.
const setScan = 16

// add adds v, which must not be in the set.
func (s *set[T]) add(v T) {
	s.list = append(s.list, v)
	switch n := len(s.list); {
	case s.at != nil:
		s.at[v] = int32(n - 1)
	case n > setScan:
		s.at = make(map[T]int32, 2*n)
		for i, one := range s.list {
			s.at[one] = int32(i)
		}
	}
}

// remove removes v, which must be in the set.
func (s *set[T]) remove(v T) {
	last := len(s.list) - 1
	if last == 0 {
		*s = set[T]{}
		return
	}
	i := s.find(v)
	s.list[i] = s.list[last]
	if s.at != nil {
		s.at[s.list[i]] = int32(i)
		delete(s.at, v)
	}
	clear(s.list[last:])
	s.list = s.list[:last]
}

func (s *set[T]) find(v T) int {
	if s.at != nil {
		return int(s.at[v])
	}
	return slices.Index(s.list, v)
}
