package pattern

import (
	"fmt"
	"slices"
	"unicode"

	"github.com/dlclark/regexp2/v2/syntax"
)

// re2 makes the parser read an expression as Go's regexp does.
const re2 = syntax.RE2

// node is one element of an expression; next is the element after it. A nil node is the end
// and matches. The parser's tree is turned inside out in this way, so that "the rest
// matches from here" is one call.
type node struct {
	op       op
	next     *node
	backward bool // reads the name from right to left, in a look-behind
	fold     bool // for a reference: ignores case

	ch  rune   // one, notOne
	set *class // set
	str []rune // text

	subs     []*node // branches; the body of a loop; the content of look-around and of atomic groups
	min, max int     // of a loop
	index    int     // number of the loop or group
	root     *program
}

// class is a set of characters.
type class struct {
	*syntax.CharSet
	ascii [2]uint64 // one bit for each ASCII character
	cost  int       // steps that testing any other character takes
}

func classOf(s *syntax.CharSet) *class {
	if s == nil {
		return nil
	}
	c := &class{CharSet: s, cost: len(s.String()) / 4}
	for ch := range rune(unicode.MaxASCII) {
		if s.Contains(ch) {
			c.ascii[ch/64] |= 1 << (ch % 64)
		}
	}
	return c
}

// program has the counts for a whole expression.
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
	branch    // subs are the branches; each continues with next
	greedy    // repeats the single character of subs[0], then continues with next
	lazy      // the same, as few times as possible
	atomicRun // the same, without giving characters back
	loop      // subs[0] is the body, which continues with loopAgain
	loopAgain
	lazyAgain
	groupStart
	groupEnd
	lookAt
	lookNot
	atomic
	ifGroup // subs: if the group has matched, else
	ifMatch // subs: the condition, if it matches, else
)

// compileTree compiles an expression, using regexp2's parser.
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
	slots map[int]int // index of each group, by its number
	err   error
}

// simpleOps maps the parser's nodes without children.
var simpleOps = map[syntax.NodeType]op{
	syntax.NtEmpty: empty, syntax.NtUpdateBumpalong: empty, syntax.NtNothing: nothing,
	syntax.NtBol: lineStart, syntax.NtEol: lineEnd, syntax.NtBeginning: start, syntax.NtStart: start,
	syntax.NtEndZ: endOrNewline, syntax.NtEnd: end, syntax.NtBoundary: boundary, syntax.NtNonboundary: noBoundary,
	syntax.NtECMABoundary: asciiBoundary, syntax.NtNonECMABoundary: noASCIIBoundary, syntax.NtGrapheme: grapheme,
	syntax.NtOne: one, syntax.NtNotone: notOne, syntax.NtSet: set, syntax.NtMulti: text,
}

// goMeaning lists the ops that mean something else in Go's regexp.
var goMeaning = map[op]op{endOrNewline: end, boundary: asciiBoundary, noBoundary: noASCIIBoundary}

// runOps maps repetitions of a single character: how it repeats, and the character.
var runOps = map[syntax.NodeType][2]op{
	syntax.NtOneloop: {greedy, one}, syntax.NtNotoneloop: {greedy, notOne}, syntax.NtSetloop: {greedy, set},
	syntax.NtOnelazy: {lazy, one}, syntax.NtNotonelazy: {lazy, notOne}, syntax.NtSetlazy: {lazy, set},
	syntax.NtOneloopatomic: {atomicRun, one}, syntax.NtNotoneloopatomic: {atomicRun, notOne}, syntax.NtSetloopatomic: {atomicRun, set},
}

// node compiles n. After n, next must match.
func (c *compiler) node(n *syntax.RegexNode, next *node) *node {
	at := &node{next: next, backward: n.Options&syntax.RightToLeft != 0, fold: n.Options&syntax.IgnoreCase != 0,
		ch: n.Ch, set: classOf(n.Set), str: n.Str, min: n.M, max: n.N}
	if kind, ok := simpleOps[n.T]; ok {
		at.op = kind
		if as, ok := goMeaning[kind]; ok && n.Options&re2 != 0 {
			at.op = as
		}
		return at
	}
	if kind, ok := runOps[n.T]; ok {
		at.op = kind[0]
		at.subs = []*node{{op: kind[1], ch: n.Ch, set: at.set, backward: at.backward}}
		return at
	}
	switch n.T {
	case syntax.NtConcatenate: // in a look-behind the parser has reversed them
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
		turn.op = loopAgain
		if n.T == syntax.NtLazyloop {
			turn.op = lazyAgain
		}
		at.next = &turn
		turn.subs = []*node{c.node(n.Children[0], &turn)}
	case syntax.NtCapture:
		if n.M == 0 { // the whole expression
			return c.node(n.Children[0], next)
		}
		if n.N != -1 {
			c.err = fmt.Errorf("balancing groups are not supported")
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
		c.err = fmt.Errorf("construct %d is not supported", n.T)
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
