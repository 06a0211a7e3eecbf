package scheduler

// queueNumbers gives each queue that has entries a small number in place of its id, which
// halves the size of an entry. A number is free again when its last entry is gone.
type queueNumbers struct {
	slots  []queueNumber
	number map[uint64]uint32
	free   []uint32

	lastID uint64 // the queue retained last, which is usually the next, too
	last   uint32
	warm   bool // lastID and last are valid
}

type queueNumber struct {
	id      uint64
	entries int
}

// maxNumbers is how many queues can have a number: as many as fit into queueBits.
const maxNumbers = 1 << queueBits

// fits reports whether a queue has a number or can get one.
func (q *queueNumbers) fits(id uint64) bool {
	if len(q.slots)-len(q.free) < maxNumbers {
		return true
	}
	_, known := q.number[id]
	return known
}

func (q *queueNumbers) id(number uint32) uint64 { return q.slots[number].id }

// retain counts one more entry of a queue and returns its number.
func (q *queueNumbers) retain(id uint64) uint32 {
	if !q.warm || q.lastID != id {
		q.last, q.lastID, q.warm = q.assign(id), id, true
	}
	q.slots[q.last].entries++
	return q.last
}

// assign returns the number of a queue, a new one if it has none.
func (q *queueNumbers) assign(id uint64) uint32 {
	if number, known := q.number[id]; known {
		return number
	}
	if q.number == nil {
		q.number = map[uint64]uint32{}
	}
	var number uint32
	if last := len(q.free) - 1; last >= 0 {
		number, q.free = q.free[last], q.free[:last]
	} else {
		number, q.slots = uint32(len(q.slots)), append(q.slots, queueNumber{})
	}
	q.slots[number] = queueNumber{id: id}
	q.number[id] = number
	return number
}

// release counts one entry less.
func (q *queueNumbers) release(number uint32) {
	slot := &q.slots[number]
	if slot.entries--; slot.entries > 0 {
		return
	}
	delete(q.number, slot.id)
	q.free = append(q.free, number)
	if q.warm && q.last == number {
		q.warm = false
	}
}
