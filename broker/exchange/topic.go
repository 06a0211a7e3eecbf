package exchange

import "curfew/broker/amqp"

// topic routes by patterns of dot-separated words: '*' matches exactly one word, '#' zero
// or more (AMQP 0-9-1 §3.1.3.3). As in RabbitMQ a word may be empty ("a." has two words),
// and only the empty key has no words.
//
// The patterns form a trie of words. A message can reach a destination twice in two ways:
// the destination has several patterns, or a pattern has several '#', so that the key can
// be split in several ways. Each such destination and each such '#' node has a number, its
// mark. A bitmap on the stack of Route, with one bit per mark, records what has been
// reached.
type topic[D comparable] struct {
	bindingTable[D]
	root  node[D]
	dests map[D]*target[D]
	marks marks
}

// target is a destination, as referred to by the trie's nodes.
type target[D comparable] struct {
	d        D
	patterns int // nodes that refer to it
	mark     int // noMark while patterns == 1
}

func (r *topic[D]) Bind(d D, key string, args amqp.Table) bool {
	added, first := r.add(d, key, args)
	if !first {
		return added != nil
	}
	t := r.dests[d]
	if t == nil {
		t = &target[D]{d: d, mark: noMark}
		r.dests[d] = t
	}
	t.patterns++
	if t.patterns == 2 {
		t.mark = r.marks.allocate()
	}
	r.root.insert(key, start(len(key)), t, &r.marks, false)
	return added != nil
}

func (r *topic[D]) unindex(x *binding[D], last bool) {
	if !last {
		return
	}
	t := r.dests[x.Destination]
	r.root.remove(x.Key, start(len(x.Key)), t, &r.marks)
	t.patterns--
	switch t.patterns {
	case 1:
		r.marks.release(t.mark)
		t.mark = noMark
	case 0:
		delete(r.dests, x.Destination)
	}
}

// Route is paced, since what is below a '#' is tried at each word of the key. The first walk is made
// in one go. If that takes more steps than are left before the next pause, it begins again: in one go if
// others had made some of those steps, and otherwise with pauses.
func (r *topic[D]) Route(key []byte, _ func() amqp.Table, out []D, p *Pace) []D {
	from, begin := len(out), start(len(key))
	for {
		left := p.left()
		w := walk[D]{key: key, out: &out, progress: progress{left: left}}
		switch n := r.marks.next; {
		case n == 0:
			w.visit(&r.root, begin)
		case n <= stackMarks:
			w.left = r.visitMarked(w, begin)
		default:
			w.met = make([]uint64, (n+63)/64)
			w.visit(&r.root, begin)
		}
		if p.Step(left - w.left); w.left > 0 {
			return out
		}
		if out = out[:from]; left == p.most() {
			break
		}
	}
	w := walk[D]{key: key, out: &out, progress: progress{left: p.left(), pace: p, seen: map[any]struct{}{}}}
	w.visit(&r.root, begin)
	return out
}

// stackMarks is how many marks one Route can record without allocating.
const stackMarks = 16384

// visitMarked has a stack frame of its own: clearing the bitmap often costs more than the
// walk.
func (r *topic[D]) visitMarked(w walk[D], begin int) (left int) {
	var met [stackMarks / 64]uint64
	w.met = met[:]
	w.visit(&r.root, begin)
	return w.left
}

// noMark is the mark of what cannot be reached twice.
const noMark = -1

// marks allocates small numbers, reusing released ones first.
type marks struct {
	free []int
	next int // one more than the highest mark in use
}

func (m *marks) allocate() int {
	if n := len(m.free); n > 0 {
		mark := m.free[n-1]
		m.free = m.free[:n-1]
		return mark
	}
	m.next++
	return m.next - 1
}

// release releases a mark. When all are released numbering starts again, so that limit is
// 0.
func (m *marks) release(mark int) {
	if m.free = append(m.free, mark); len(m.free) == m.next {
		*m = marks{}
	}
}
