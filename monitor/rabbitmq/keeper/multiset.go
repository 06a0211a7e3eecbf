package keeper

import (
	"cmp"
	"slices"

	"curfew/broker/deadline"
)

// remembered is a message that is not held at the moment, known by its fingerprint.
type remembered struct {
	fingerprint uint64
	deadline    deadline.Instant
	flags       flags
	early       uint8
}

// multiset keeps the deadlines of messages by fingerprint, in order. Equal messages share a fingerprint, and nobody can tell which
// deadline belongs to which message. So the first message that comes back gets the earliest: the set of deadlines is the
// same. The zero value is empty.
type multiset map[uint64][]remembered

// find returns the place of the first record of a fingerprint with that deadline or a later one.
func (m multiset) find(fingerprint uint64, at deadline.Instant) (place int, found bool) {
	return slices.BinarySearchFunc(m[fingerprint], at, func(r remembered, at deadline.Instant) int { return cmp.Compare(r.deadline, at) })
}

// add adds a record. What comes in order of deadline is added fast.
func (m *multiset) add(r remembered) {
	if *m == nil {
		*m = multiset{}
	}
	place, _ := m.find(r.fingerprint, r.deadline+1)
	(*m)[r.fingerprint] = slices.Insert((*m)[r.fingerprint], place, r)
}

// take removes the earliest record of a fingerprint.
func (m multiset) take(fingerprint uint64) (r remembered, ok bool) {
	if list := m[fingerprint]; len(list) > 0 {
		m.delete(fingerprint, 0)
		return list[0], true
	}
	return r, false
}

// dropBefore removes all records with earlier deadlines.
func (m *multiset) dropBefore(at deadline.Instant) {
	for fingerprint := range *m {
		for n, _ := m.find(fingerprint, at); n > 0; n-- {
			m.delete(fingerprint, 0)
		}
	}
	if len(*m) == 0 {
		*m = nil // a map keeps the memory of a busy hour
	}
}

// has reports whether there is a record with that deadline that has come back early that often.
func (m multiset) has(r remembered) bool {
	place, _ := m.find(r.fingerprint, r.deadline)
	return slices.ContainsFunc(m[r.fingerprint][place:], func(o remembered) bool { return o.deadline == r.deadline && o.early == r.early })
}

// remove takes one record with that deadline out, and reports whether there was one.
func (m multiset) remove(fingerprint uint64, at deadline.Instant) bool {
	place, found := m.find(fingerprint, at)
	if found {
		m.delete(fingerprint, place)
	}
	return found
}

func (m multiset) delete(fingerprint uint64, place int) {
	switch list := m[fingerprint]; {
	case len(list) == 1:
		delete(m, fingerprint)
	case place == 0:
		m[fingerprint] = list[1:]
	default:
		m[fingerprint] = slices.Delete(list, place, place+1)
	}
}

// each calls fn with every record.
func (m multiset) each(fn func(remembered)) {
	for _, list := range m {
		for _, r := range list {
			fn(r)
		}
	}
}
