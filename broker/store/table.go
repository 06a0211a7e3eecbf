package store

import "sync/atomic"

// table finds a segment by its number without a lock. Numbers only grow, and old segments may stay
// in use for a long time: it takes 8 bytes for each number since the oldest. It is copied when it is
// full, without what is gone at its beginning. The owner's lock serializes writers.
type table struct {
	all atomic.Pointer[numbered]
}

type numbered struct {
	base     uint64 // number of the first
	segments []atomic.Pointer[segment]
}

// minTable is the least length of a table.
const minTable = 64

// get returns the segment with that number, or nil if there is none.
func (t *table) get(number uint64) *segment {
	d := t.all.Load()
	if d == nil || number-d.base >= uint64(len(d.segments)) {
		return nil
	}
	return d.segments[number-d.base].Load()
}

// set adds a segment with a higher number than all before it.
func (t *table) set(s *segment) {
	d := t.all.Load()
	if d == nil || s.number-d.base >= uint64(len(d.segments)) {
		d = t.grow(s.number)
	}
	d.segments[s.number-d.base].Store(s)
}

// grow makes room for a number, and for as many more as there are since the oldest.
func (t *table) grow(number uint64) *numbered {
	base := number
	t.each(func(s *segment) bool {
		base = s.number
		return false
	})
	d := &numbered{base, make([]atomic.Pointer[segment], max(minTable, 2*(number-base+1)))}
	t.each(func(s *segment) bool {
		d.segments[s.number-base].Store(s)
		return true
	})
	t.all.Store(d)
	return d
}

// clear removes a segment.
func (t *table) clear(number uint64) {
	d := t.all.Load()
	d.segments[number-d.base].Store(nil)
}

// each calls fn for every segment in ascending order of numbers, until fn returns false.
func (t *table) each(fn func(*segment) bool) {
	d := t.all.Load()
	if d == nil {
		return
	}
	for i := range d.segments {
		if s := d.segments[i].Load(); s != nil && !fn(s) {
			return
		}
	}
}
