package pattern

import (
	"fmt"
	"slices"
	"unicode"

	"github.com/dlclark/regexp2/v2/syntax"
)

// re2 has the parser read an expression as Go's regexp does, where that takes it too.
const re2 = syntax.RE2

// node is one thing an expression asks of a name, and next what it asks after that.
// A nil node is the end: it matches. The parser's tree is turned inside out like this
// so that "the rest matches from here" is one call.
type node struct {
	op       op
	next     *node
	backward bool // it reads the name from right to left: in a look-behind
	fold     bool // a reference: letters of either case

	ch  rune   // one, notOne
	set *class // set
	str []rune // text

	subs     []*node // branches; the body of a loop; what look-around and atomic groups hold
	min, max int     // of a loop
	index    int     // of a loop or a group, among those of its kind
	root     *program
}

// class is a set of characters.
type class struct {
	*syntax.CharSet
	ascii [2]uint64 // those of ASCII, a bit each
	price int       // steps that it takes to ask for another
}

func classOf(s *syntax.CharSet) *class {
	if s == nil {
		return nil
	}
	c := &class{CharSet: s, price: len(s.String()) / 4}
	for ch := range rune(unicode.MaxASCII) {
		if s.Contains(ch) {
			c.ascii[ch/64] |= 1 << (ch % 64)
		}
	}
	return c
}

// program is what is known of a whole expression.
type program struct {
	loops, groups int
}

type op uint8

const (
	empty op = iota
	nothing
	one
	notOne
	set
	text
	reference
	lineStart
	lineEnd
	start
	endOrNewline
	end
	boundary
	noBoundary
	asciiBoundary
	noASCIIBoundary
	grapheme
	branch    // subs are the branches, each goes on to next by itself
	greedy    // of one character, in next's stead: subs[0] says which
	lazy      // the same
	atomicRun // the same, gives nothing back
	loop      // subs[0] is the body, which comes back to the loop's turn
	loopTurn
	lazyTurn
	groupStart
	groupEnd
	lookAt
	lookNot
	atomic
	ifGroup // subs: if the group has matched, and if not
	ifMatch // subs: what is asked, if it matches, and if not
)

// compileTree reads an expression with regexp2's parser.
func compileTree(expr string, options syntax.RegexOptions) (*node, error) {
	tree, err := syntax.Parse(expr, syntax.ParseOptions{RegexOptions: options})
	if err != nil {
		return nil, err
	}
	c := compiler{program: &program{}, slots: map[int]int{}}
	first := c.node(tree.Root, nil)
	if c.err != nil {
		return nil, c.err
	}
	return &node{op: empty, next: first, root: c.program}, nil
}

type compiler struct {
	*program
	slots map[int]int // of groups, by their number
	err   error
}

// simple are the parser's nodes that have nothing in them.
var simple = map[syntax.NodeType]op{
	syntax.NtEmpty: empty, syntax.NtUpdateBumpalong: empty, syntax.NtNothing: nothing,
	syntax.NtBol: lineStart, syntax.NtEol: lineEnd, syntax.NtBeginning: start, syntax.NtStart: start,
	syntax.NtEndZ: endOrNewline, syntax.NtEnd: end, syntax.NtBoundary: boundary, syntax.NtNonboundary: noBoundary,
	syntax.NtECMABoundary: asciiBoundary, syntax.NtNonECMABoundary: noASCIIBoundary, syntax.NtGrapheme: grapheme,
	syntax.NtOne: one, syntax.NtNotone: notOne, syntax.NtSet: set, syntax.NtMulti: text,
}

// asGo are those that mean something else to Go's regexp.
var asGo = map[op]op{endOrNewline: end, boundary: asciiBoundary, noBoundary: noASCIIBoundary}

// runs are those of one character again and again: how they repeat, and what.
var runs = map[syntax.NodeType][2]op{
	syntax.NtOneloop: {greedy, one}, syntax.NtNotoneloop: {greedy, notOne}, syntax.NtSetloop: {greedy, set},
	syntax.NtOnelazy: {lazy, one}, syntax.NtNotonelazy: {lazy, notOne}, syntax.NtSetlazy: {lazy, set},
	syntax.NtOneloopatomic: {atomicRun, one}, syntax.NtNotoneloopatomic: {atomicRun, notOne}, syntax.NtSetloopatomic: {atomicRun, set},
}

// node compiles n, after which next is to match.
func (c *compiler) node(n *syntax.RegexNode, next *node) *node {
	at := &node{next: next, backward: n.Options&syntax.RightToLeft != 0, fold: n.Options&syntax.IgnoreCase != 0,
		ch: n.Ch, set: classOf(n.Set), str: n.Str, min: n.M, max: n.N}
	if kind, ok := simple[n.T]; ok {
		at.op = kind
		if as, ok := asGo[kind]; ok && n.Options&re2 != 0 {
			at.op = as
		}
		return at
	}
	if kind, ok := runs[n.T]; ok {
		at.op = kind[0]
		at.subs = []*node{{op: kind[1], ch: n.Ch, set: at.set, backward: at.backward}}
		return at
	}
	switch n.T {
	case syntax.NtConcatenate: // a look-behind's are the other way round already
		for _, child := range slices.Backward(n.Children) {
			next = c.node(child, next)
		}
		return next
	case syntax.NtGroup:
		return c.node(n.Children[0], next)
	case syntax.NtAlternate:
		at.op, at.subs = branch, c.nodes(n.Children, next)
	case syntax.NtLoop, syntax.NtLazyloop:
		at.op = loop
		at.index = c.loops
		c.loops++
		turn := *at
		turn.op = loopTurn
		if n.T == syntax.NtLazyloop {
			turn.op = lazyTurn
		}
		at.next = &turn
		turn.subs = []*node{c.node(n.Children[0], &turn)}
	case syntax.NtCapture:
		if n.M == 0 { // the whole
			return c.node(n.Children[0], next)
		}
		if n.N != -1 {
			c.err = fmt.Errorf("a group that balances another is not known")
			return at
		}
		at.op, at.index = groupStart, c.group(n.M)
		at.next = c.node(n.Children[0], &node{op: groupEnd, next: next, index: at.index})
	case syntax.NtRef:
		at.op, at.index = reference, c.group(n.M)
	case syntax.NtPosLook, syntax.NtNegLook, syntax.NtAtomic:
		at.op = map[syntax.NodeType]op{syntax.NtPosLook: lookAt, syntax.NtNegLook: lookNot, syntax.NtAtomic: atomic}[n.T]
		at.subs = c.nodes(n.Children, nil)
	case syntax.NtBackRefCond:
		at.op, at.index = ifGroup, c.group(n.M)
		at.subs = append(c.nodes(n.Children, next), next)
	case syntax.NtExprCond:
		at.op = ifMatch
		at.subs = append(c.nodes(n.Children[:1], nil), c.nodes(n.Children[1:], next)...)
		at.subs = append(at.subs, next)
	default:
		c.err = fmt.Errorf("construct %d is not known", n.T)
	}
	return at
}

func (c *compiler) nodes(list []*syntax.RegexNode, next *node) []*node {
	compiled := make([]*node, len(list))
	for i, n := range list {
		compiled[i] = c.node(n, next)
	}
	return compiled
}

func (c *compiler) group(number int) int {
	slot, ok := c.slots[number]
	if !ok {
		slot = len(c.slots)
		c.slots[number] = slot
		c.groups = slot + 1
	}
	return slot
}

// match looks for the expression from each place of the name. node is compileTree's.
func (n *node) match(name string, limit int) (matched bool, steps int) {
	m := matcher{name: []rune(name), limit: limit, loops: make([]turns, n.root.loops), groups: make([]span, n.root.groups)}
	for i := range m.groups {
		m.groups[i] = span{from: -1, to: -1}
	}
	for at := 0; at <= len(m.name) && m.steps <= limit; at++ {
		if m.run(n.next, at) {
			return true, m.steps
		}
	}
	return false, min(m.steps, limit+1)
}

// matcher is one match under way. What run changes of it, run puts back when it
// returns false.
type matcher struct {
	name         []rune
	steps, limit int // more steps than limit: everything fails from then on
	depth        int // of calls
	at           int // where the run that matched last ended
	loops        []turns
	groups       []span
}

// turns says how often a loop's body has matched, and where it began to the last time.
type turns struct{ done, mark int }

// span is what a group has matched, from -1 nothing; began is where it begins
// while it is being matched.
type span struct{ from, to, began int }

// maxDepth bounds the stack, at some 500 bytes a call. Beyond it a match is given up.
const maxDepth = 20_000

// run says whether n, and what follows it, matches from there.
func (m *matcher) run(n *node, at int) bool {
	if m.depth++; m.depth > maxDepth {
		m.steps = m.limit + 1
	}
	matched := m.follow(n, at)
	m.depth--
	return matched
}

func (m *matcher) follow(n *node, at int) bool {
	for ; n != nil; n = n.next {
		if m.steps++; m.steps > m.limit {
			return false
		}
		switch n.op {
		case greedy, lazy, atomicRun:
			least, most := n.min, m.most(n, at)
			m.steps += most / 8
			if most < least {
				return false
			}
			if n.op == atomicRun {
				at += n.stride(most)
				continue
			}
			return m.repeated(n, at, least, most)
		case branch:
			for _, sub := range n.subs {
				if m.run(sub, at) {
					return true
				}
			}
			return false
		case loop:
			return m.begin(n, at)
		case loopTurn, lazyTurn:
			return m.turn(n, at)
		case groupStart, groupEnd:
			return m.group(n, at)
		case lookAt, lookNot, atomic, ifMatch:
			return m.apart(n, at)
		case ifGroup:
			if m.groups[n.index].from >= 0 {
				return m.run(n.subs[0], at)
			}
			return m.run(n.subs[1], at)
		default:
			var ok bool
			if at, ok = m.step(n, at); !ok {
				return false
			}
		}
	}
	m.at = at
	return true
}

// stride is how far count characters lead.
func (n *node) stride(count int) int {
	if n.backward {
		return -count
	}
	return count
}

// most is how often the run's character can be read from there.
func (m *matcher) most(n *node, at int) int {
	count, ok := 0, true
	for count < n.max {
		if at, ok = m.step(n.subs[0], at); !ok {
			break
		}
		count++
	}
	return count
}

// repeated has what follows match after as many characters as possible, or as few.
func (m *matcher) repeated(n *node, at, least, most int) bool {
	for i := range most - least + 1 {
		count := most - i
		if n.op == lazy {
			count = least + i
		}
		if m.run(n.next, at+n.stride(count)) {
			return true
		}
		if m.steps > m.limit {
			return false
		}
	}
	return false
}

func (m *matcher) begin(n *node, at int) bool {
	saved := m.loops[n.index]
	m.loops[n.index] = turns{mark: -1}
	if m.run(n.next, at) {
		return true
	}
	m.loops[n.index] = saved
	return false
}

// turn is where a loop decides whether its body is to match once more. A body that
// has matched nothing ends the loop.
func (m *matcher) turn(n *node, at int) bool {
	t := m.loops[n.index]
	again := func() bool {
		m.loops[n.index] = turns{t.done + 1, at}
		if m.run(n.subs[0], at) {
			return true
		}
		m.loops[n.index] = t
		return false
	}
	switch {
	case t.done < n.min:
		return again()
	case t.done >= n.max || at == t.mark:
		return m.run(n.next, at)
	case n.op == lazyTurn:
		return m.run(n.next, at) || again()
	}
	return again() || m.run(n.next, at)
}

func (m *matcher) group(n *node, at int) bool {
	g := &m.groups[n.index]
	saved := *g
	if n.op == groupStart {
		g.began = at
	} else {
		g.from, g.to = min(g.began, at), max(g.began, at)
	}
	if m.run(n.next, at) {
		return true
	}
	m.groups[n.index] = saved
	return false
}

// apart matches what stands for itself: how it matched is not tried otherwise when
// what follows does not match.
func (m *matcher) apart(n *node, at int) bool {
	saved := slices.Clone(m.groups)
	m.steps += len(saved) / 8
	matched := m.run(n.subs[0], at)
	after := n.next
	switch {
	case m.steps > m.limit:
		matched = false
		after = nil
	case n.op == ifMatch && matched:
		after = n.subs[1]
	case n.op == ifMatch:
		after, matched = n.subs[2], true
	case n.op == lookNot:
		if matched {
			copy(m.groups, saved)
		}
		matched = !matched
	case n.op == atomic && matched:
		at = m.at
	}
	if matched && m.run(after, at) {
		return true
	}
	copy(m.groups, saved)
	return false
}

// step matches what needs no decision; it returns where that ends.
func (m *matcher) step(n *node, at int) (int, bool) {
	switch n.op {
	case one, notOne, set:
		ch, ok := m.char(n, at)
		return at + n.stride(1), ok && m.takes(n, ch)
	case text:
		return m.literal(n, n.str, at)
	case reference:
		if g := m.groups[n.index]; g.from >= 0 {
			return m.literal(n, m.name[g.from:g.to], at)
		}
		return at, false
	case grapheme:
		if n.backward {
			at = syntax.PreviousGraphemeClusterBoundary(m.name, at)
		} else {
			at = syntax.NextGraphemeClusterBoundary(m.name, at)
		}
		return at, at >= 0
	}
	return at, m.holds(n.op, at)
}

// char is the next character in n's direction.
func (m *matcher) char(n *node, at int) (rune, bool) {
	if n.backward {
		at--
	}
	if at < 0 || at >= len(m.name) {
		return 0, false
	}
	return m.name[at], true
}

func (m *matcher) takes(n *node, ch rune) bool {
	switch n.op {
	case one:
		return ch == n.ch
	case notOne:
		return ch != n.ch
	}
	if ch < unicode.MaxASCII {
		return n.set.ascii[ch/64]&(1<<(ch%64)) != 0
	}
	m.steps += n.set.price
	return n.set.Contains(ch)
}

func (m *matcher) literal(n *node, want []rune, at int) (int, bool) {
	m.steps += len(want) / 8
	from, to := at, at+len(want)
	end := to
	if n.backward {
		from, to = at-len(want), at
		end = from
	}
	if from < 0 || to > len(m.name) {
		return at, false
	}
	return end, slices.EqualFunc(m.name[from:to], want, func(a, b rune) bool {
		return a == b || n.fold && syntax.IsCaseEquivalent(a, b, 0)
	})
}

// holds is for what reads nothing.
func (m *matcher) holds(o op, at int) bool {
	left, right := rune(-1), rune(-1)
	if at > 0 {
		left = m.name[at-1]
	}
	if at < len(m.name) {
		right = m.name[at]
	}
	switch o {
	case empty:
		return true
	case lineStart:
		return at == 0 || left == '\n'
	case lineEnd:
		return at == len(m.name) || right == '\n'
	case start:
		return at == 0
	case end:
		return at == len(m.name)
	case endOrNewline:
		return at == len(m.name) || at == len(m.name)-1 && right == '\n'
	case boundary:
		return syntax.IsWordChar(left) != syntax.IsWordChar(right)
	case noBoundary:
		return syntax.IsWordChar(left) == syntax.IsWordChar(right)
	case asciiBoundary:
		return asciiWord(left) != asciiWord(right)
	case noASCIIBoundary:
		return asciiWord(left) == asciiWord(right)
	}
	return false
}

func asciiWord(ch rune) bool { return syntax.IsECMAWordCharWithOptions(0, ch) }
