package policy

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Pattern is the regular expression of a policy or a permission. It matches anywhere in a name, unless
// it is anchored. Safe for concurrent use.
//
// RabbitMQ uses PCRE, which tries one way after the other and can take years for an unlucky name. Here
// Go's regexp matches, in time proportional to the name and to the expression. It has no look-ahead, but
// policies that leave names out are written with it. Where look-aheads stand at the beginning of the
// name, or after text that it begins with, each is matched by itself:
//
//	^orders\.(?!dead$).*    is    ^orders\..*    and not    ^orders\.(?:dead$)
//
// Everything else that PCRE has and Go's regexp has not is refused, with the reason and what to write
// instead.
type Pattern struct {
	tests []test // it matches where all hold
}

// test is one expression of a pattern.
type test struct {
	re     *regexp.Regexp
	not    bool   // the name must not match
	prefix string // that all matches begin with, and
	part   string // that they contain: these are looked for first, which takes a hundredth of the time of a match
}

const (
	// maxExpression bounds the length of an expression, in octets.
	maxExpression = 16 << 10

	// maxLookAhead bounds one with a look-ahead: it is read again for each of its parentheses.
	maxLookAhead = 1 << 10

	// maxSize bounds the size of an expression as Go's regexp compiles it, in instructions. A
	// match takes up to 10 ns for each instruction and character of the name.
	maxSize = 4096
)

var errTooLarge = errors.New("regular expression is too large: use several smaller ones, or less repetition by numbers")

var (
	errLookAhead = errors.New(`a look-ahead is possible only at the beginning of the name or after fixed text, such as in ^(?!x).* or ^orders\.(?!x).*; ` +
		`for names that do not contain x write ^(?!.*x), and for names that do not end with x, ^(?!.*x$)`)
	errLookAheadRepeated    = errors.New("a look-ahead cannot be repeated")
	errLookAheadAlternative = errors.New("alternatives beside a look-ahead are not supported: put them into a group, ^(?!x)(?:a|b), or set a policy for each")
)

// beforeLookAhead is what may stand before a look-ahead: (?i), the beginning of the name, fixed text.
var beforeLookAhead = regexp.MustCompile(`^(?:\(\?i\))?(?:\^|\\A)(?:[^\\^$.|?*+()\[\]{}]|\\[^\pL\pN])*`)

// CompilePattern compiles an expression. The error says what is wrong, in RabbitMQ's words for the
// most common mistake, and what to write instead of something that is not supported.
func CompilePattern(expr string) (*Pattern, error) {
	if len(expr) > maxExpression {
		return nil, errTooLarge
	}
	p := &Pattern{}
	before := beforeLookAhead.FindString(expr)
	rest := expr[len(before):]
	for strings.HasPrefix(rest, "(?!") || strings.HasPrefix(rest, "(?=") {
		body, after, ok := lookAhead(rest)
		switch {
		case len(expr) > maxLookAhead:
			return nil, errTooLarge
		case !ok:
			return nil, missingParenthesis(expr)
		case after != "" && strings.Contains("*+?{", after[:1]):
			return nil, errLookAheadRepeated
		}
		if err := p.add(before+"(?:"+body+")", rest[2] == '!'); err != nil {
			return nil, err
		}
		rest = after
	}
	if len(p.tests) > 0 && hasAlternatives(rest) {
		return nil, errLookAheadAlternative
	}
	return p, p.add(before+rest, false)
}

// lookAhead divides what begins with a look-ahead. Its end is the first parenthesis before which is a whole expression.
func lookAhead(s string) (body, after string, ok bool) {
	const begin = len("(?!")
	for i := begin; i < len(s); i++ {
		if s[i] == ')' && parses(s[begin:i]) {
			return s[begin:i], s[i+1:], true
		}
	}
	return "", "", false
}

// hasAlternatives reports whether an expression has alternatives outside of groups: with a whole expression on either side.
func hasAlternatives(s string) bool {
	for i := range len(s) {
		if s[i] == '|' && parses(s[:i]) && parses(s[i+1:]) {
			return true
		}
	}
	return false
}

// parses reports whether s is an expression, or would be one if it had no look-ahead.
func parses(s string) bool {
	if len(s) > maxLookAhead {
		return false
	}
	_, err := syntax.Parse(strings.NewReplacer("(?!", "(?:", "(?=", "(?:").Replace(s), syntax.Perl)
	return err == nil
}

func (p *Pattern) add(expr string, not bool) error {
	re, parsed, err := compile(expr)
	if err != nil {
		return explained(expr, err)
	}
	p.tests = append(p.tests, test{re, not, requiredPrefix(parsed), requiredPart(parsed)})
	return nil
}

// Match reports whether the expression matches anywhere in name. A nil Pattern matches nothing.
func (p *Pattern) Match(name string) bool {
	if p == nil {
		return false
	}
	for i := range p.tests {
		t := &p.tests[i]
		if (strings.HasPrefix(name, t.prefix) && strings.Contains(name, t.part) && t.re.MatchString(name)) == t.not {
			return false
		}
	}
	return true
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

// requiredPrefix is the text that an anchored expression begins with.
func requiredPrefix(re *syntax.Regexp) string {
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText || re.Sub[1].Op != syntax.OpLiteral || re.Sub[1].Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(re.Sub[1].Rune)
}

// requiredPart is the longest fixed text of an expression that stands in no group and under no repetition.
func requiredPart(re *syntax.Regexp) (longest string) {
	parts := re.Sub
	if re.Op == syntax.OpLiteral {
		parts = []*syntax.Regexp{re}
	} else if re.Op != syntax.OpConcat {
		return ""
	}
	for _, part := range parts {
		if part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0 && len(part.Rune) > len(longest) {
			longest = string(part.Rune)
		}
	}
	return longest
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

func missingParenthesis(expr string) error { return fmt.Errorf(`{"missing )",%d}`, len(expr)) } // PCRE's reason and offset

// foreign lists what PCRE has and Go's regexp has not, and what to write instead.
var foreign = []struct {
	begins  *regexp.Regexp // in the part of the expression that Go's regexp objects to
	problem string
}{
	{regexp.MustCompile(`^\(\?[=!]`), errLookAhead.Error()},
	{regexp.MustCompile(`^\(\?<=`), "look-behind is not supported: write what is before as part of the pattern"},
	{regexp.MustCompile(`^\(\?<!`), "look-behind is not supported: for names that do not end with x, write ^(?!.*x$)"},
	{regexp.MustCompile(`^\(\?>`), "atomic groups are not supported: write (?:...)"},
	{regexp.MustCompile(`^\(\?#`), "comments are not supported: leave them out"},
	{regexp.MustCompile(`^\(\?\(`), "conditions are not supported: write the alternatives, (?:...|...)"},
	{regexp.MustCompile(`^\(\?\|`), "branch reset is not supported: write (?:...)"},
	{regexp.MustCompile(`^\(\?P[=)]?$|^\(\?P=|^\\[1-9kg]`), "back references are not supported: write the alternatives, (?:a-a|b-b)"},
	{regexp.MustCompile(`^\\Z`), `\Z is not supported: write $`},
	{regexp.MustCompile(`^\\h`), `\h is not supported: write [ \t]`},
	{regexp.MustCompile(`^\\R`), `\R is not supported: write [\r\n]`},
	{regexp.MustCompile(`[*+?}]\+$`), "possessive repetition is not supported: leave out the second sign"},
}

// explained says what is wrong with an expression that Go's regexp does not accept.
func explained(expr string, err error) error {
	var mistake *syntax.Error
	if !errors.As(err, &mistake) {
		return err
	}
	for _, f := range foreign {
		if f.begins.MatchString(mistake.Expr) {
			return errors.New(f.problem)
		}
	}
	if mistake.Code == syntax.ErrMissingParen {
		return missingParenthesis(expr)
	}
	return fmt.Errorf("%s: %s; patterns have the syntax of RE2", mistake.Code, mistake.Expr)
}
