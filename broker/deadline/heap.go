package deadline

// Heap keeps its first item before all others. It is not safe for concurrent use.
type Heap[T any] struct {
	Items []T // the first one comes before all others
	// Before reports whether a comes before b. It is required.
	Before func(a, b T) bool
	// Moved is told each new place of an item, -1 when it is out; nil: nobody is told.
	Moved func(item T, place int)
}

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.Items = append(h.Items, item)
	h.up(len(h.Items)-1, item)
}

// Remove takes out the item at a place.
func (h *Heap[T]) Remove(place int) T {
	item, last := h.Items[place], len(h.Items)-1
	moved := h.Items[last]
	clear(h.Items[last:])
	if h.Items = h.Items[:last]; place < last {
		h.put(moved, place)
		h.Fix(place)
	}
	if h.Moved != nil {
		h.Moved(item, -1)
	}
	return item
}

// Fix puts the item at a place where it belongs, after it was changed.
func (h *Heap[T]) Fix(place int) {
	item := h.Items[place]
	h.up(h.down(place, item), item)
}

// Init puts all items where they belong, after Items was changed.
func (h *Heap[T]) Init() {
	for place := len(h.Items) - 1; place >= 0; place-- {
		item := h.Items[place]
		h.put(item, h.down(place, item))
	}
}

// down makes room for an item at a place, or behind what comes before it, and returns where.
func (h *Heap[T]) down(place int, item T) int {
	for {
		child := 2*place + 1
		if child >= len(h.Items) {
			return place
		}
		if right := child + 1; right < len(h.Items) && h.Before(h.Items[right], h.Items[child]) {
			child = right
		}
		if !h.Before(h.Items[child], item) {
			return place
		}
		h.put(h.Items[child], place)
		place = child
	}
}

// up puts an item at a place, or in front of what it comes before.
func (h *Heap[T]) up(place int, item T) {
	for place > 0 {
		parent := (place - 1) / 2
		if !h.Before(item, h.Items[parent]) {
			break
		}
		h.put(h.Items[parent], place)
		place = parent
	}
	h.put(item, place)
}

func (h *Heap[T]) put(item T, place int) {
	if h.Items[place] = item; h.Moved != nil {
		h.Moved(item, place)
	}
}
