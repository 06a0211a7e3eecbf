package exchange

import (
	"bytes"
	"slices"
	"strings"
)

// node is one word of a pattern. Its children are the words that may follow. Its targets
// have the pattern that ends here.
type node[D comparable] struct {
	words   map[string]*node[D]
	star    *node[D] // child for '*'
	hash    *node[D] // child for '#'
	targets set[*target[D]]
	mark    int // of a '#' below another '#', otherwise noMark
}

// A position in a key is the byte offset of its next word. The last word may be empty, at
// offset len, so the end is len+1. The empty key has no words and starts at its end.

func start(length int) int {
	if length == 0 {
		return 1
	}
	return 0
}

// insert adds t below n, for the words of pattern from position at. below: an ancestor is a
// '#'.
func (n *node[D]) insert(pattern string, at int, t *target[D], m *marks, below bool) {
	if at > len(pattern) {
		n.targets.add(t)
		return
	}
	word, next := cut(pattern, at)
	slot := n.child(word)
	if slot == nil {
		slot = &node[D]{mark: noMark}
		if word == "#" && below {
			slot.mark = m.allocate()
		}
		n.link(word, slot)
	}
	slot.insert(pattern, next, t, m, below || word == "#")
}

// remove removes t from below n and removes nodes that become empty.
func (n *node[D]) remove(pattern string, at int, t *target[D], m *marks) {
	if at > len(pattern) {
		n.targets.remove(t)
		return
	}
	word, next := cut(pattern, at)
	c := n.child(word)
	c.remove(pattern, next, t, m)
	if c.leaf() && len(c.targets.list) == 0 {
		if c.mark != noMark {
			m.release(c.mark)
		}
		n.link(word, nil)
	}
}

func (n *node[D]) child(word string) *node[D] {
	switch word {
	case "*":
		return n.star
	case "#":
		return n.hash
	}
	return n.words[word]
}

// link sets the child for a word; nil removes it.
func (n *node[D]) link(word string, c *node[D]) {
	switch {
	case word == "*":
		n.star = c
	case word == "#":
		n.hash = c
	case c == nil:
		delete(n.words, word)
	case n.words == nil:
		n.words = map[string]*node[D]{word: c}
	default:
		n.words[word] = c
	}
}

func (n *node[D]) leaf() bool { return n.star == nil && n.hash == nil && len(n.words) == 0 }

// cut returns the word at position at, and the position after it.
func cut(pattern string, at int) (word string, next int) {
	if i := strings.IndexByte(pattern[at:], '.'); i >= 0 {
		return pattern[at : at+i], at + i + 1
	}
	return pattern[at:], len(pattern) + 1
}

// walk is one Route through the trie. It points to out and does not contain it: otherwise
// the compiler would take met for part of the result and put it on the heap.
type walk[D comparable] struct {
	key []byte
	out *[]D
	progress
}

// progress is how far a walk through an index has come. If it may pause, what it has reached is in seen,
// since marks may be given to others during a pause.
type progress struct {
	left int      // steps; after them the walk pauses or, without a pace, ends
	met  []uint64 // bit per mark
	pace *Pace    // nil: it does not pause
	seen map[any]struct{}
}

// step counts steps, and reports whether the walk goes on.
func (p *progress) step(n int) bool {
	if p.left -= n; p.left > 0 {
		return true
	}
	if p.pace == nil {
		p.left = 0
		return false
	}
	p.pace.Step(p.pace.left() - p.left)
	p.left = p.pace.left()
	return true
}

// reached reports whether what has this mark has been reached.
func (p *progress) reached(mark int, what any) (known bool) {
	if p.pace != nil {
		_, known = p.seen[what]
		return known
	}
	return mark != noMark && p.met[mark/64]&(1<<(mark%64)) != 0
}

// reach notes that it has.
func (p *progress) reach(mark int, what any) {
	switch {
	case p.pace != nil:
		p.seen[what] = struct{}{}
	case mark != noMark:
		p.met[mark/64] |= 1 << (mark % 64)
	}
}

// visit continues at n, whose pattern has consumed the key up to position at.
//
// A node that is not below a '#' is visited at most once, since it has one parent and one
// distance from the root. A node below a '#' is visited once per word at which its part of
// the pattern can begin.
func (w *walk[D]) visit(n *node[D], at int) {
	if !w.step(1) {
		return
	}
	if n.hash != nil {
		w.visitHash(n.hash, at)
	}
	if at > len(w.key) {
		w.emit(&n.targets)
		return
	}
	w.follow(n, at)
}

// visitHash enters a '#' at position at: the rest of its pattern may begin here or at any
// later word. A '#' below another may be reached from several words. The first visit is the
// one at the earliest word; it covers everything that later ones could find.
func (w *walk[D]) visitHash(h *node[D], at int) {
	if h.mark != noMark {
		if w.reached(h.mark, h) {
			return
		}
		w.reach(h.mark, h)
	}
	w.emit(&h.targets)
	if h.leaf() {
		return
	}
	if h.hash != nil {
		w.visitHash(h.hash, at)
	}
	for at <= len(w.key) && w.step(1) {
		at = w.follow(h, at)
	}
}

// follow consumes the word at position at, starting from n, and returns the position after
// it.
func (w *walk[D]) follow(n *node[D], at int) (next int) {
	word := w.key[at:]
	next = len(w.key) + 1
	if i := bytes.IndexByte(word, '.'); i >= 0 {
		word, next = word[:i], at+i+1
	}
	if c := n.words[string(word)]; c != nil {
		w.visit(c, next)
	}
	if n.star != nil {
		w.visit(n.star, next)
	}
	return next
}

func (w *walk[D]) emit(targets *set[*target[D]]) {
	perStep, list := 8, targets.list
	if w.pace != nil {
		perStep = 1 // seen is slower than marks
		if len(list) > 1 {
			list = slices.Clone(list) // it may change in a pause
		}
	}
	for i, t := range list {
		if !w.reached(t.mark, t) {
			w.reach(t.mark, t)
			*w.out = append(*w.out, t.d)
		}
		if i%perStep == perStep-1 && !w.step(1) {
			return
		}
	}
}
