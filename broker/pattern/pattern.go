package pattern

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	// maxExpression bounds the length of an expression, in octets.
	maxExpression = 16 << 10

	// maxSize bounds the size of an expression as Go's regexp compiles it, in instructions. A
	// match takes up to 10 ns for each instruction and character of the name.
	maxSize = 4096
)

var errTooLarge = errors.New("regular expression is too large: use several smaller ones, or less repetition by numbers")

// Pattern is a compiled regular expression.
type Pattern struct {
	branches [][]test // it matches where all tests of a branch hold
}

// test is one expression of a branch. All its matches begin with prefix, at the start of the
// name, and contain one of parts (nil: nothing is known).
type test struct {
	re     *regexp.Regexp
	not    bool // the name must not match
	prefix string
	parts  []string
}

// Compile compiles an expression. The error says what is wrong, in RabbitMQ's words for the
// most common mistake, and what to write instead of something that is not supported.
func Compile(expr string) (*Pattern, error) {
	if len(expr) > maxExpression {
		return nil, errTooLarge
	}
	list := []branch{{text: expr}}
	if strings.Contains(expr, "(?=") || strings.Contains(expr, "(?!") {
		var err error
		if list, err = split(expr); err != nil {
			return nil, err
		}
	}
	p := &Pattern{}
	for _, b := range list {
		tests, err := b.compile()
		if err != nil {
			return nil, err
		}
		p.branches = append(p.branches, tests)
	}
	return p, nil
}

// Match reports whether the expression matches anywhere in name. A nil Pattern matches nothing.
func (p *Pattern) Match(name string) bool {
	if p == nil {
		return false
	}
	for _, tests := range p.branches {
		if holdAll(tests, name) {
			return true
		}
	}
	return false
}

func holdAll(tests []test, name string) bool {
	for i := range tests {
		t := &tests[i]
		if (t.possible(name) && t.re.MatchString(name)) == t.not {
			return false
		}
	}
	return true
}

// possible reports whether the name has what the expression requires.
func (t *test) possible(name string) bool {
	if !strings.HasPrefix(name, t.prefix) {
		return false
	}
	for _, part := range t.parts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return t.parts == nil
}

// Linear compiles an expression for Go's regexp. It refuses one that is too large.
func Linear(expr string) (*regexp.Regexp, error) {
	re, _, err := compile(expr)
	return re, err
}

func compile(expr string) (*regexp.Regexp, *syntax.Regexp, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, nil, err
	}
	if sizeOf(parsed) >= maxSize {
		return nil, nil, errTooLarge
	}
	re, err := regexp.Compile(expr)
	return re, parsed, err
}

func newTest(expr string, not bool) (test, error) {
	re, parsed, err := compile(expr)
	if err != nil {
		return test{}, explained(expr, err)
	}
	return test{re, not, requiredPrefix(parsed), requiredParts(parsed)}, nil
}

// requiredPrefix is the text that an anchored expression begins with.
func requiredPrefix(re *syntax.Regexp) string {
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	return literal(re.Sub[1])
}

// literal is the text that re is, "" if it is something else.
func literal(re *syntax.Regexp) string {
	if re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(re.Rune)
}

// maxParts bounds the texts that are looked for.
const maxParts = 16

// requiredParts returns texts one of which is in every name that matches; nil if none is known.
func requiredParts(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if text := literal(re); text != "" {
			return []string{text}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredParts(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredParts(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if parts := requiredParts(sub); shortest(parts) > shortest(best) {
				best = parts
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			parts := requiredParts(sub)
			if all = append(all, parts...); parts == nil || len(all) > maxParts {
				return nil
			}
		}
		return all
	}
	return nil
}

// shortest is the length of the shortest text, 0 without any.
func shortest(parts []string) int {
	if len(parts) == 0 {
		return 0
	}
	return len(slices.MinFunc(parts, func(a, b string) int { return len(a) - len(b) }))
}

// sizeOf estimates the number of instructions that Go's regexp compiles the expression to,
// up to maxSize.
func sizeOf(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+sizeOf(sub), maxSize)
	}
	switch re.Op {
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1)
	case syntax.OpCapture:
		n++
	}
	return min(n, maxSize)
}
