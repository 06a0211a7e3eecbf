package pattern

import (
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// Cheap is a number of steps that costs about as much as a match by Go's regexp: 20 µs
	// at most, usually 1 µs. Matches by Go's regexp never take more.
	Cheap = 1024

	// matchLimit bounds one call of Match, at about 10 ms. (PCRE's default, 10 million
	// calls, suits a program that serves nobody else.) Go's regexp stays below it for any
	// name of 255 bytes.
	matchLimit = 600_000

	// maxExpression bounds the length of an expression, in octets. RabbitMQ allows 64 KiB,
	// of the compiled expression.
	maxExpression = 16 << 10

	// maxNesting bounds nested parentheses, as in PCRE.
	maxNesting = 250

	// linearSteps is how many instructions Go's regexp tries per step.
	linearSteps = 4
)

// Pattern is a compiled regular expression.
type Pattern struct {
	linear *regexp.Regexp // nil: Go's regexp does not support it, or it is too large for any name
	size   int            // of linear, in instructions
	tree   *node          // nil: only linear
}

// Compile compiles an expression. Its errors are of type *Error.
func Compile(expr string) (*Pattern, error) {
	if len(expr) > maxExpression {
		return nil, &Error{"regular expression is too large", 0}
	}
	if nestsTooDeep(expr) {
		return nil, &Error{"parentheses are too deeply nested", 0}
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		tree, err := compileTree(expr, 0)
		if err != nil {
			return nil, newError(expr, err)
		}
		return &Pattern{tree: tree}, nil
	}
	p := &Pattern{size: sizeOf(parsed)}
	if p.linearCost(0) <= Cheap {
		if p.linear, err = regexp.Compile(expr); err != nil {
			return nil, newError(expr, err)
		}
	}
	p.tree, err = compileTree(expr, re2)
	if err != nil && p.linear == nil {
		return nil, &Error{"regular expression is too large", 0}
	}
	return p, nil
}

// Match reports whether the expression matches anywhere in name. A match that takes more
// than about 10 ms counts as no match, like one beyond PCRE's match limit in RabbitMQ.
func (p *Pattern) Match(name string) bool {
	matched, _ := p.MatchWithin(name, matchLimit)
	return matched
}

// MatchWithin is Match with a limit on the number of steps. It also returns the number of
// steps, which is always the same for the same limit. If that exceeds limit, the match was
// given up and matched is false.
func (p *Pattern) MatchWithin(name string, limit int) (matched bool, steps int) {
	if p.linear == nil {
		return p.tree.search(name, limit)
	}
	cost := p.linearCost(utf8.RuneCountInString(name))
	if cost > Cheap && p.tree != nil {
		most := min(limit, cost)
		if matched, steps = p.tree.search(name, most); steps <= most {
			return matched, steps
		}
	}
	if steps += cost; steps > limit {
		return false, limit + 1
	}
	return p.linear.MatchString(name), steps
}

// CheapFor reports whether matching the name is certain to take no more than Cheap steps.
func (p *Pattern) CheapFor(name string) bool {
	return p.linear != nil && p.linearCost(len(name)) <= Cheap
}

// Linear compiles an expression for Go's regexp, which takes time in proportion to the text
// and to the size of the expression. It refuses an expression that is too large to be
// cheap.
func Linear(expr string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if sizeOf(parsed) >= tooLarge {
		return nil, &Error{"regular expression is too large", 0}
	}
	return regexp.Compile(expr)
}

// linearCost returns the most that Go's regexp does for a name, in steps.
func (p *Pattern) linearCost(runes int) int { return p.size * (runes + 1) / linearSteps }

// sizeOf estimates the number of instructions that Go's regexp compiles the expression to,
// up to tooLarge.
func sizeOf(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+sizeOf(sub), tooLarge)
	}
	switch re.Op {
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1)
	case syntax.OpCapture:
		n++
	}
	return min(n, tooLarge)
}

// tooLarge is a size that is too large for any name.
const tooLarge = (Cheap + 1) * linearSteps
