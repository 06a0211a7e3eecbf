package memstore

import (
	"curfew/broker/deadline"
	"curfew/scheduler"
)

// moved holds the shadows whose score is not their deadline: mostly leased ones,
// which leave it within moments. They are in a heap by score and then in order of
// shadow; an index finds them.
type moved struct {
	index map[deadline.Ref]int32 // place in slots
	slots []slot
	free  []int32 // places in slots
	heap  []int32 // places in slots; 4-ary
}

const (
	// movedKeep is the number of slots up to which room is never given back.
	movedKeep = 1 << 12
	// movedShrink: room is given back when less than one slot in movedShrink is used.
	// Consumers may have held very many past their deadlines, and few moves cost little.
	movedShrink = 64
)

type slot struct {
	scheduler.Later
	pos int32 // place in heap
}

func (m *moved) len() int { return len(m.heap) }

// get returns where a shadow is among slots.
func (m *moved) get(s deadline.Ref) (place int32, ok bool) {
	if len(m.heap) == 0 {
		return 0, false
	}
	place, ok = m.index[s]
	return place, ok
}

// first returns the one with the lowest score.
func (m *moved) first() (l scheduler.Later, ok bool) {
	if len(m.heap) == 0 {
		return l, false
	}
	return m.slots[m.heap[0]].Later, true
}

// add puts in a shadow that is not there.
func (m *moved) add(l scheduler.Later) {
	place := int32(len(m.slots))
	if last := len(m.free) - 1; last >= 0 {
		place, m.free = m.free[last], m.free[:last]
	} else {
		m.slots = append(m.slots, slot{})
	}
	if m.index == nil {
		m.index = map[deadline.Ref]int32{}
	}
	m.index[l.Ref] = place
	m.slots[place].Later = l
	m.heap = append(m.heap, place)
	m.rise(len(m.heap) - 1)
}

// rescore gives the shadow at a place another score.
func (m *moved) rescore(place int32, at deadline.Instant) {
	m.slots[place].At = at
	pos := int(m.slots[place].pos)
	m.rise(pos)
	m.sink(int(m.slots[place].pos))
}

// remove takes out the shadow at a place. Others may be elsewhere afterwards.
func (m *moved) remove(place int32) {
	m.cut(place)
	if len(m.slots) > movedKeep && len(m.heap) < len(m.slots)/movedShrink {
		m.shrink()
	}
}

// shrink moves those that are left into memory of their size.
func (m *moved) shrink() {
	var small moved
	for _, place := range m.heap {
		small.add(m.slots[place].Later)
	}
	*m = small
}

func (m *moved) cut(place int32) {
	delete(m.index, m.slots[place].Ref)
	m.free = append(m.free, place)
	pos, last := int(m.slots[place].pos), len(m.heap)-1
	moved := m.heap[last]
	m.heap = m.heap[:last]
	if pos == last {
		return
	}
	m.set(pos, moved)
	m.rise(pos)
	m.sink(int(m.slots[moved].pos))
}

func (m *moved) set(pos int, place int32) {
	m.heap[pos] = place
	m.slots[place].pos = int32(pos)
}

func (m *moved) less(a, b int32) bool {
	x, y := &m.slots[a].Later, &m.slots[b].Later
	if x.At != y.At {
		return x.At < y.At
	}
	return x.Compare(y.Ref) < 0
}

func (m *moved) rise(pos int) {
	place := m.heap[pos]
	for pos > 0 {
		parent := (pos - 1) / 4
		if !m.less(place, m.heap[parent]) {
			break
		}
		m.set(pos, m.heap[parent])
		pos = parent
	}
	m.set(pos, place)
}

func (m *moved) sink(pos int) {
	place := m.heap[pos]
	for {
		least := 4*pos + 1
		if least >= len(m.heap) {
			break
		}
		for child := least + 1; child < min(4*pos+5, len(m.heap)); child++ {
			if m.less(m.heap[child], m.heap[least]) {
				least = child
			}
		}
		if !m.less(m.heap[least], place) {
			break
		}
		m.set(pos, m.heap[least])
		pos = least
	}
	m.set(pos, place)
}
