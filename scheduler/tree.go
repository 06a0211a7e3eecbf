package scheduler

import (
	"slices"

	"curfew/broker/deadline"
)

// tree keeps shadows in order: a sorted list of nodes of pages of entries. Its depth
// is fixed, and three levels are enough: 100 million entries take some 3000 nodes.
//
// Insertion splits a full page in half. But right after the page's last insertion it
// splits there, and at the very end (or beginning) of a page it begins a new page next
// to it: deadlines that come in order, as those of a queue with one TTL do, leave full
// pages behind.
type tree struct {
	queues queueNumbers
	nodes  []*node
	lows   []deadline.Ref // nodes[i].low[0]
	spare  []*page        // emptied pages for reuse, at most spareMax
	length int
	added  place // of the last insertion; the next is usually there, too
	gone   place // of the last removal; likewise
}

const (
	nodeCap  = 256
	spareMax = 256 // half a MiB
)

// node is a sorted list of pages. None of them is empty.
type node struct {
	count int            // entries of all pages
	low   []deadline.Ref // no entry of pages[i] is less; every entry of an earlier page is
	pages []*page        // at most nodeCap
}

// place says where a page is.
type place struct{ node, page int }

// find returns the page that a shadow is in, if it is in the tree, or would be in. For
// shadows less than all others that is the very first page.
func (t *tree) find(s deadline.Ref, hint place) place {
	if t.holds(hint, s) {
		return hint
	}
	i := lastNotAfter(t.lows, s)
	n := t.nodes[i]
	return place{i, lastNotAfter(n.low, s)}
}

// holds reports whether find would return this place, which the tree may no longer have.
func (t *tree) holds(at place, s deadline.Ref) bool {
	if at.node >= len(t.nodes) || at.page >= len(t.nodes[at.node].pages) {
		return false
	}
	n := t.nodes[at.node]
	if n.low[at.page].Compare(s) > 0 {
		return false
	}
	switch {
	case at.page+1 < len(n.pages):
		return n.low[at.page+1].Compare(s) > 0
	case at.node+1 < len(t.nodes):
		return t.lows[at.node+1].Compare(s) > 0
	}
	return true
}

// lastNotAfter returns the index of the last of lows that is not after s, or 0.
func lastNotAfter(lows []deadline.Ref, s deadline.Ref) int {
	lo, hi := 1, len(lows) // all before lo are not after s, or 0 is the answer
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if lows[mid].Deadline < s.Deadline || lows[mid].Deadline == s.Deadline && lows[mid].Compare(s) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// insert adds a shadow for which takes is true; false if it exists already.
func (t *tree) insert(s deadline.Ref) bool {
	if len(t.nodes) == 0 {
		t.addPage(place{0, 0}, s, t.newPage())
	}
	at := t.find(s, t.added)
	p := t.nodes[at.node].pages[at.page]
	i, found := p.placeOf(s, &t.queues)
	if found {
		return false
	}
	t.length++
	if p.n == pageCap || !p.coverAlso(s.Deadline) {
		at, p, i = t.split(at, p, i, s)
		p.coverAlso(s.Deadline)
	}
	p.insert(i, s.Deadline, t.queues.retain(s.Queue), s.Seq)
	t.nodes[at.node].count++
	t.added = at
	return true
}

// split makes room for s, which belongs at i of a page, and returns where it
// belongs then.
func (t *tree) split(at place, p *page, i int, s deadline.Ref) (place, *page, int) {
	fresh := t.newPage()
	next := place{at.node, at.page + 1}
	switch i {
	case p.len():
		return t.addPage(next, s, fresh), fresh, 0
	case 0:
		first := p.shadow(0, &t.queues)
		t.nodes[at.node].pages[at.page] = fresh
		t.nodes[at.node].count -= p.len() // addPage counts them again
		next = t.addPage(next, first, p)
		return t.before(next), fresh, 0
	}
	cut := p.len() / 2
	if i == int(p.last)+1 {
		cut = i
	}
	fresh.base = p.base
	p.moveTail(cut, fresh)
	t.nodes[at.node].count -= fresh.len() // likewise
	next = t.addPage(next, fresh.shadow(0, &t.queues), fresh)
	if i > cut {
		return next, fresh, i - cut
	}
	return t.before(next), p, i
}

// before returns the place ahead of another, which is not the first.
func (t *tree) before(at place) place {
	if at.page > 0 {
		return place{at.node, at.page - 1}
	}
	return place{at.node - 1, len(t.nodes[at.node-1].pages) - 1}
}

// addPage inserts a page at a place, splitting the node if it is full, and returns
// the place it got.
func (t *tree) addPage(at place, low deadline.Ref, p *page) place {
	switch {
	case at.node == len(t.nodes):
		t.addNode(at.node, &node{}, low)
	case len(t.nodes[at.node].pages) < nodeCap:
	case at.page == nodeCap:
		at = place{at.node + 1, 0}
		t.addNode(at.node, &node{}, low)
	default:
		full, right := t.nodes[at.node], &node{}
		const half = nodeCap / 2
		full.move(half, right)
		t.addNode(at.node+1, right, right.low[0])
		if at.page > half {
			at = place{at.node + 1, at.page - half}
		}
	}
	n := t.nodes[at.node]
	n.low, n.pages = slices.Insert(n.low, at.page, low), slices.Insert(n.pages, at.page, p)
	n.count += p.len()
	t.lows[at.node] = n.low[0]
	return at
}

func (t *tree) addNode(i int, n *node, low deadline.Ref) {
	t.nodes = slices.Insert(t.nodes, i, n)
	t.lows = slices.Insert(t.lows, i, low)
}

// move appends the pages from i on to another node.
func (n *node) move(i int, to *node) {
	moved := 0
	for _, p := range n.pages[i:] {
		moved += p.len()
	}
	n.count, to.count = n.count-moved, to.count+moved
	to.low, to.pages = append(to.low, n.low[i:]...), append(to.pages, n.pages[i:]...)
	n.low, n.pages = n.low[:i], slices.Delete(n.pages, i, len(n.pages))
}

// remove takes out the first of some shadows, and as many of the next as directly follow
// it in its page. It returns how many; 0 if the first is not in the tree.
func (t *tree) remove(some []deadline.Ref) (n int) {
	if t.length == 0 {
		return 0
	}
	at := t.find(some[0], t.gone)
	p := t.nodes[at.node].pages[at.page]
	i, found := p.search(some[0], &t.queues)
	if !found {
		return 0
	}
	for n = 1; n < len(some) && p.is(i+n, some[n], &t.queues); n++ {
	}
	t.cut(at, i, i+n)
	t.gone = at
	return n
}

// cut removes the entries [from, to) of a page, and the page or node if it has become too small.
func (t *tree) cut(at place, from, to int) {
	p := t.nodes[at.node].pages[at.page]
	for i := from; i < to; i++ {
		t.queues.release(p.queue(i))
	}
	p.remove(from, to)
	t.length -= to - from
	t.nodes[at.node].count -= to - from
	switch {
	case p.n == 0:
		t.dropPage(at)
	case p.n < pageCap/4:
		t.join(at)
	}
}

// join merges a page that became small with a neighbour in its node, unless the result
// would soon have to be split again.
func (t *tree) join(at place) {
	n := t.nodes[at.node]
	if at.page+1 < len(n.pages) && n.pages[at.page].takes(n.pages[at.page+1]) {
		t.dropPage(place{at.node, at.page + 1})
	} else if at.page > 0 && n.pages[at.page-1].takes(n.pages[at.page]) {
		t.dropPage(at)
	}
}

// dropPage takes out an empty page, and its node if that has no other.
func (t *tree) dropPage(at place) {
	n := t.nodes[at.node]
	if len(t.spare) < spareMax {
		t.spare = append(t.spare, n.pages[at.page])
	}
	n.low, n.pages = slices.Delete(n.low, at.page, at.page+1), slices.Delete(n.pages, at.page, at.page+1)
	if len(n.pages) == 0 {
		t.dropNode(at.node)
		return
	}
	t.lows[at.node] = n.low[0]
	if len(n.pages) < nodeCap/4 {
		t.joinNode(at.node)
	}
}

// joinNode merges a node that became small with a neighbour, as join does pages.
func (t *tree) joinNode(i int) {
	for _, left := range []int{i, i - 1} {
		if left < 0 || left+1 == len(t.nodes) || len(t.nodes[left].pages)+len(t.nodes[left+1].pages) > nodeCap*3/4 {
			continue
		}
		t.nodes[left+1].move(0, t.nodes[left])
		t.dropNode(left + 1)
		return
	}
}

func (t *tree) dropNode(i int) {
	t.nodes = slices.Delete(t.nodes, i, i+1)
	t.lows = slices.Delete(t.lows, i, i+1)
}

func (t *tree) newPage() *page {
	last := len(t.spare) - 1
	if last < 0 {
		return &page{}
	}
	p := t.spare[last]
	t.spare[last], t.spare = nil, t.spare[:last]
	return p
}

// first returns the least shadow.
func (t *tree) first() (s deadline.Ref, ok bool) {
	if t.length == 0 {
		return s, false
	}
	return t.nodes[0].pages[0].shadow(0, &t.queues), true
}

// pop takes out the least shadows whose deadline is <= until, at most max. popped is called for
// each, and does not change the tree.
func (t *tree) pop(until deadline.Instant, max int, popped func(deadline.Ref)) {
	for max > 0 && t.length > 0 {
		p := t.nodes[0].pages[0]
		due := min(p.due(until), max)
		if due == 0 {
			break
		}
		for i := range due {
			popped(p.shadow(i, &t.queues))
		}
		t.cut(place{0, 0}, 0, due)
		max -= due
	}
}

// after appends at most max of the shadows that come after s, in order.
func (t *tree) after(s deadline.Ref, max int, out []deadline.Ref) []deadline.Ref {
	if t.length == 0 {
		return out
	}
	at := t.find(s, t.gone)
	i, found := t.nodes[at.node].pages[at.page].search(s, &t.queues)
	if found {
		i++
	}
	for ; at.node < len(t.nodes); at = (place{at.node + 1, 0}) {
		n := t.nodes[at.node]
		for _, p := range n.pages[at.page:] {
			for ; i < p.len(); i++ {
				if len(out) == max {
					return out
				}
				out = append(out, p.shadow(i, &t.queues))
			}
			i = 0
		}
	}
	return out
}
