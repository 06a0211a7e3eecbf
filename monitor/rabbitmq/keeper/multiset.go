package keeper

import "curfew/broker/deadline"

// remembered is a message that is not held at the moment, known by its fingerprint.
type remembered struct {
	fingerprint uint64
	deadline    deadline.Instant
	flags       flags
	early       uint8
}

// multiset keeps the deadlines of messages by fingerprint. Equal messages share a fingerprint, and nobody can tell which
// deadline belongs to which message. So the first message that comes back gets the earliest: the set of deadlines is the
// same. The zero value is empty.
type multiset struct {
	lists map[uint64]list
	nodes []node
	free  uint32 // index + 1; 0 is none
}

type list struct{ first, last uint32 }

type node struct {
	remembered
	next uint32
}

// add keeps each list in order of deadline; what comes in that order is added in constant time.
func (m *multiset) add(r remembered) {
	i := m.node(r)
	l, ok := m.lists[r.fingerprint]
	if !ok {
		if m.lists == nil {
			m.lists = map[uint64]list{}
		}
		m.lists[r.fingerprint] = list{i, i}
		return
	}
	switch {
	case m.nodes[l.last].deadline <= r.deadline:
		m.nodes[l.last].next = i
		l.last = i
	case r.deadline < m.nodes[l.first].deadline:
		m.nodes[i].next = l.first
		l.first = i
	default:
		at := l.first
		for m.nodes[m.nodes[at].next].deadline <= r.deadline {
			at = m.nodes[at].next
		}
		m.nodes[i].next = m.nodes[at].next
		m.nodes[at].next = i
	}
	m.lists[r.fingerprint] = l
}

func (m *multiset) node(r remembered) uint32 {
	if m.free != 0 {
		i := m.free - 1
		if next := m.nodes[i].next; next == none {
			m.free = 0
		} else {
			m.free = next + 1
		}
		m.nodes[i] = node{r, none}
		return i
	}
	m.nodes = append(m.nodes, node{r, none})
	return uint32(len(m.nodes) - 1)
}

// take removes the earliest record of a fingerprint.
func (m *multiset) take(fingerprint uint64) (remembered, bool) {
	l, ok := m.lists[fingerprint]
	if !ok {
		return remembered{}, false
	}
	i := l.first
	r := m.nodes[i].remembered
	if l.first = m.nodes[i].next; l.first == none {
		delete(m.lists, fingerprint)
	} else {
		m.lists[fingerprint] = l
	}
	m.release(i)
	return r, true
}

// dropBefore removes all records with earlier deadlines.
func (m *multiset) dropBefore(at deadline.Instant) {
	for fingerprint := range m.lists {
		for l, ok := m.lists[fingerprint]; ok && m.nodes[l.first].deadline < at; l, ok = m.lists[fingerprint] {
			m.take(fingerprint)
		}
	}
	if len(m.lists) == 0 {
		*m = multiset{}
	}
}

// has reports whether there is a record with that deadline.
func (m *multiset) has(fingerprint uint64, at deadline.Instant) bool {
	l, ok := m.lists[fingerprint]
	for i := l.first; ok && i != none && m.nodes[i].deadline <= at; i = m.nodes[i].next {
		if m.nodes[i].deadline == at {
			return true
		}
	}
	return false
}

// remove takes one record with that deadline out, and reports whether there was one.
func (m *multiset) remove(fingerprint uint64, at deadline.Instant) bool {
	l, ok := m.lists[fingerprint]
	if !ok {
		return false
	}
	before := uint32(none)
	for i := l.first; i != none && m.nodes[i].deadline <= at; before, i = i, m.nodes[i].next {
		if m.nodes[i].deadline != at {
			continue
		}
		next := m.nodes[i].next
		if before == none {
			l.first = next
		} else {
			m.nodes[before].next = next
		}
		if next == none {
			l.last = before
		}
		if l.first == none {
			delete(m.lists, fingerprint)
		} else {
			m.lists[fingerprint] = l
		}
		m.release(i)
		return true
	}
	return false
}

func (m *multiset) release(i uint32) {
	next := uint32(none)
	if m.free != 0 {
		next = m.free - 1
	}
	m.nodes[i] = node{next: next}
	m.free = i + 1
}

// each calls fn with every record.
func (m *multiset) each(fn func(remembered)) {
	for _, l := range m.lists {
		for i := l.first; i != none; i = m.nodes[i].next {
			fn(m.nodes[i].remembered)
		}
	}
}
