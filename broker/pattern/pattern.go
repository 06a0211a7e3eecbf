package pattern

import (
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// Cheap is how many steps a match may take that costs about as much as one
	// by Go's regexp: some 20 µs at most, 1 µs as a rule. What Go's regexp matches
	// never takes more.
	Cheap = 1024

	// matchLimit bounds one match by Match: some 10 ms. (PCRE's default, 10 million
	// calls, is for a program with nobody else to serve.) What Go's regexp takes for
	// any name of 255 bytes is below it.
	matchLimit = 600_000

	// maxExpression bounds an expression, in octets. RabbitMQ's may be 64 KiB when
	// compiled.
	maxExpression = 16 << 10

	// maxNesting bounds parentheses in parentheses, as PCRE does.
	maxNesting = 250

	// linearSteps is how many instructions Go's regexp tries in one step.
	linearSteps = 4
)

// Pattern is a compiled regular expression.
type Pattern struct {
	linear *regexp.Regexp // nil: Go's regexp does not take it, or it is too large for any name
	size   int            // of linear, in instructions
	tree   *node          // nil: only linear
}

// Compile reads an expression. The error is an *Error.
func Compile(expr string) (*Pattern, error) {
	if len(expr) > maxExpression {
		return nil, &Error{"regular expression is too large", maxExpression}
	}
	if at, deep := tooDeep(expr); deep {
		return nil, &Error{"parentheses are too deeply nested", at}
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		tree, other := compileTree(expr, 0)
		if other != nil {
			return nil, explain(expr, err, other)
		}
		return &Pattern{tree: tree}, nil
	}
	p := &Pattern{size: sizeOf(parsed)}
	if p.linearCost(0) <= Cheap {
		if p.linear, err = regexp.Compile(expr); err != nil {
			return nil, explain(expr, err, err)
		}
	}
	p.tree, err = compileTree(expr, re2)
	if err != nil && p.linear == nil {
		return nil, &Error{"regular expression is too large", len(expr)}
	}
	return p, nil
}

// Match says whether the expression matches somewhere in name. A match that takes
// too long, more than some 10 ms, is none, as beyond PCRE's match limit in RabbitMQ.
func (p *Pattern) Match(name string) bool {
	matched, _ := p.MatchWithin(name, matchLimit)
	return matched
}

// MatchWithin is Match with a limit of steps, and says how many it took: with the
// same limit always as many. More than limit: it was given up, and matched is false.
func (p *Pattern) MatchWithin(name string, limit int) (matched bool, steps int) {
	if p.linear == nil {
		return p.tree.match(name, limit)
	}
	cost := p.linearCost(utf8.RuneCountInString(name))
	if cost > Cheap && p.tree != nil {
		most := min(limit, cost)
		if matched, steps = p.tree.match(name, most); steps <= most {
			return matched, steps
		}
	}
	if steps += cost; steps > limit {
		return false, limit + 1
	}
	return p.linear.MatchString(name), steps
}

// CheapFor says that matching the name is sure to take no more than Cheap steps.
func (p *Pattern) CheapFor(name string) bool {
	return p.linear != nil && p.linearCost(len(name)) <= Cheap
}

// Linear compiles an expression for Go's regexp, whose time is in proportion to the
// text and to the expression's size, unless that is so large that its memory and
// time would be felt.
func Linear(expr string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if sizeOf(parsed) >= enough {
		return nil, &Error{"regular expression is too large", len(expr)}
	}
	return regexp.Compile(expr)
}

// linearCost is the most that Go's regexp does for a name, in steps.
func (p *Pattern) linearCost(runes int) int { return p.size * (runes + 1) / linearSteps }

// sizeOf is about how many instructions Go's regexp compiles the expression to,
// or more than is cheap.
func sizeOf(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+sizeOf(sub), enough)
	}
	switch re.Op {
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1)
	case syntax.OpCapture:
		n++
	}
	return min(n, enough)
}

// enough is a size that is too large for every name.
const enough = (Cheap + 1) * linearSteps
