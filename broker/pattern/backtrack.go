package pattern

import (
	"slices"
	"unicode"

	"github.com/dlclark/regexp2/v2/syntax"
)

// search tries to match the expression at each position of the name. n is compileTree's.
func (n *node) search(name string, limit int) (matched bool, steps int) {
	m := matcher{name: []rune(name), limit: limit, loops: make([]iterations, n.root.loops), groups: make([]span, n.root.groups)}
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

// matcher is the state of a match. If run returns false it restores whatever it changed.
type matcher struct {
	name         []rune
	steps, limit int // beyond limit everything fails
	depth        int // of calls
	at           int // where the last successful run ended
	loops        []iterations
	groups       []span
}

// iterations counts how often a loop's body has matched. mark is where the last one began.
type iterations struct{ done, mark int }

// span is what a group has matched; nothing if from is -1. began is where it begins, while
// it is being matched.
type span struct{ from, to, began int }

// maxDepth bounds the stack, at about 500 bytes per call. Deeper matches are given up.
const maxDepth = 20_000

// run reports whether n, and everything after it, matches at a position.
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
			least, most := n.min, m.longestRun(n, at)
			m.steps += most / 8
			if most < least {
				return false
			}
			if n.op == atomicRun {
				at += n.stride(most)
				continue
			}
			return m.matchRepeated(n, at, least, most)
		case branch:
			for _, sub := range n.subs {
				if m.run(sub, at) {
					return true
				}
			}
			return false
		case loop:
			return m.enterLoop(n, at)
		case loopAgain, lazyAgain:
			return m.iterate(n, at)
		case groupStart, groupEnd:
			return m.group(n, at)
		case lookAt, lookNot, atomic, ifMatch:
			return m.matchIndependent(n, at)
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

// stride returns the distance that count characters cover.
func (n *node) stride(count int) int {
	if n.backward {
		return -count
	}
	return count
}

// longestRun returns how many times the repeated character matches at a position.
func (m *matcher) longestRun(n *node, at int) int {
	var ok bool
	count := 0
	for count < n.max {
		if at, ok = m.step(n.subs[0], at); !ok {
			break
		}
		count++
	}
	return count
}

// matchRepeated tries to match the rest after as many characters as possible, or as few.
func (m *matcher) matchRepeated(n *node, at, least, most int) bool {
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

func (m *matcher) enterLoop(n *node, at int) bool {
	saved := m.loops[n.index]
	m.loops[n.index] = iterations{mark: -1}
	if m.run(n.next, at) {
		return true
	}
	m.loops[n.index] = saved
	return false
}

// iterate decides whether a loop's body has to match once more. A body that matched nothing
// ends the loop.
func (m *matcher) iterate(n *node, at int) bool {
	t := m.loops[n.index]
	again := func() bool {
		m.loops[n.index] = iterations{t.done + 1, at}
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
	case n.op == lazyAgain:
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

// matchIndependent matches look-around, atomic groups and conditions: if the rest does not
// match, no other way to match them is tried.
func (m *matcher) matchIndependent(n *node, at int) bool {
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

// step matches an element that needs no decision, and returns where that ends.
func (m *matcher) step(n *node, at int) (int, bool) {
	switch n.op {
	case one, notOne, set:
		ch, ok := m.char(n, at)
		return at + n.stride(1), ok && m.accepts(n, ch)
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
	return at, m.assert(n.op, at)
}

// char returns the next character in n's direction.
func (m *matcher) char(n *node, at int) (rune, bool) {
	if n.backward {
		at--
	}
	if at < 0 || at >= len(m.name) {
		return 0, false
	}
	return m.name[at], true
}

func (m *matcher) accepts(n *node, ch rune) bool {
	switch n.op {
	case one:
		return ch == n.ch
	case notOne:
		return ch != n.ch
	}
	if ch < unicode.MaxASCII {
		return n.set.ascii[ch/64]&(1<<(ch%64)) != 0
	}
	m.steps += n.set.cost
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

// assert tests an element that reads nothing.
func (m *matcher) assert(o op, at int) bool {
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
