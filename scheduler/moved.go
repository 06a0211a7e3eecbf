package scheduler

import (
	"curfew/broker/chunked"
	"curfew/broker/deadline"
)

// moved holds the shadows whose score is not their deadline: mostly leased ones,
// which leave it within moments. They are in a heap by score and then in order of
// shadow; an index finds them.
type moved struct {
	index map[deadline.Ref]int32 // place in slots
	slots chunked.Slice[slot]
	free  chunked.Slice[int32] // places in slots
	heap  chunked.Slice[int32] // places in slots; 4-ary
}

const (
	// movedKeep is the number of slots up to which room is never given back.
	movedKeep = 1 << 12
	// movedShrink and movedFew: room is given back when less than one slot in movedShrink is used,
	// and no more than movedFew. Consumers may have held very many past their deadlines, and few
	// moves cost little.
	movedShrink, movedFew = 64, 1 << 10
)

type slot struct {
	Later
	pos int32 // place in heap
}

func (m *moved) len() int { return m.heap.Len() }

// get returns where a shadow is among slots.
func (m *moved) get(s deadline.Ref) (place int32, ok bool) {
	if m.len() == 0 {
		return 0, false
	}
	place, ok = m.index[s]
	return place, ok
}

func (m *moved) at(place int32) *slot { return m.slots.At(int(place)) }

// first returns the one with the lowest score.
func (m *moved) first() (l Later, ok bool) {
	if m.len() == 0 {
		return l, false
	}
	return m.at(*m.heap.At(0)).Later, true
}

// add puts in a shadow that is not there.
func (m *moved) add(l Later) {
	place := int32(m.slots.Len())
	if m.free.Len() > 0 {
		place = m.free.Pop()
	} else {
		m.slots.Push(slot{})
	}
	if m.index == nil {
		m.index = map[deadline.Ref]int32{}
	}
	m.index[l.Ref] = place
	m.at(place).Later = l
	m.heap.Push(place)
	m.rise(m.len() - 1)
}

// rescore gives the shadow at a place another score.
func (m *moved) rescore(place int32, at deadline.Instant) {
	s := m.at(place)
	s.At = at
	m.rise(int(s.pos))
	m.sink(int(s.pos))
}

// remove takes out the shadow at a place. Others may be elsewhere afterwards.
func (m *moved) remove(place int32) {
	m.cut(place)
	if m.slots.Len() > movedKeep && m.len() < min(m.slots.Len()/movedShrink, movedFew) {
		m.shrink()
	}
}

// shrink moves those that are left into memory of their size.
func (m *moved) shrink() {
	var small moved
	for pos := range m.len() {
		small.add(m.at(*m.heap.At(pos)).Later)
	}
	*m = small
}

func (m *moved) cut(place int32) {
	delete(m.index, m.at(place).Ref)
	m.free.Push(place)
	pos, last := int(m.at(place).pos), m.heap.Pop()
	if pos == m.len() {
		return
	}
	m.set(pos, last)
	m.rise(pos)
	m.sink(int(m.at(last).pos))
}

func (m *moved) set(pos int, place int32) {
	*m.heap.At(pos) = place
	m.at(place).pos = int32(pos)
}

func (m *moved) less(a, b int32) bool {
	x, y := &m.at(a).Later, &m.at(b).Later
	if x.At != y.At {
		return x.At < y.At
	}
	return x.Compare(y.Ref) < 0
}

func (m *moved) rise(pos int) {
	place := *m.heap.At(pos)
	for pos > 0 {
		parent := (pos - 1) / 4
		if !m.less(place, *m.heap.At(parent)) {
			break
		}
		m.set(pos, *m.heap.At(parent))
		pos = parent
	}
	m.set(pos, place)
}

func (m *moved) sink(pos int) {
	place := *m.heap.At(pos)
	for {
		least := 4*pos + 1
		if least >= m.len() {
			break
		}
		for child := least + 1; child < min(4*pos+5, m.len()); child++ {
			if m.less(*m.heap.At(child), *m.heap.At(least)) {
				least = child
			}
		}
		if !m.less(*m.heap.At(least), place) {
			break
		}
		m.set(pos, *m.heap.At(least))
		pos = least
	}
	m.set(pos, place)
}
