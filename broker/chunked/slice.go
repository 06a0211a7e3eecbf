package chunked

// Slice is a slice that grows and shrinks at its end without being copied: it is made of chunks. So
// adding an element takes no longer when there are very many. The zero value is empty. It is not safe
// for concurrent use.
type Slice[T any] struct {
	chunks [][]T // all of chunkLen, but for the last ones: those before the spare one are full up to n
	n      int
}

// chunkLen is how many elements a chunk has. The first one grows up to it.
const chunkLen = 1 << 10

// Len returns the number of elements.
func (a *Slice[T]) Len() int { return a.n }

// At returns the element with an index, which is valid until it is removed; or, of the first
// chunkLen elements, until the next Push.
func (a *Slice[T]) At(i int) *T { return &a.chunks[i/chunkLen][i%chunkLen] }

// Push adds an element at the end.
func (a *Slice[T]) Push(v T) {
	at := a.n / chunkLen
	if at == len(a.chunks) {
		var c []T
		if at > 0 {
			c = make([]T, 0, chunkLen)
		}
		a.chunks = append(a.chunks, c)
	}
	a.chunks[at] = append(a.chunks[at], v)
	a.n++
}

// Pop removes the last element, which must exist. It gives memory back, but for one chunk.
func (a *Slice[T]) Pop() T {
	a.n--
	at, i := a.n/chunkLen, a.n%chunkLen
	c := a.chunks[at]
	v := c[i]
	clear(c[i:])
	a.chunks[at] = c[:i]
	if i == 0 && at+1 < len(a.chunks) {
		a.chunks[at+1] = nil
		a.chunks = a.chunks[:at+1]
	}
	return v
}
