package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// branch is one alternative of an expression, with its look-aheads taken out.
type branch struct {
	text  string
	looks []look
}

// look is a look-ahead.
type look struct {
	at   int    // its place in the branch's text
	body string // what must match there
	not  bool   // or must not
}

// flags is a setting such as (?i). It lasts to the end of its group, so outside of groups it
// also applies to the alternatives after it.
var flags = regexp.MustCompile(`^\(\?[imsU-]+\)`)

// split takes the look-aheads outside of groups out of an expression, and divides it into its
// alternatives.
func split(expr string) ([]branch, error) {
	var list []branch
	var b branch
	set, depth := "", 0
	for rest := expr; rest != ""; {
		n := token(rest)
		switch {
		case depth == 0 && isLookAhead(rest):
			if n = group(rest); n < 0 {
				return nil, missingParenthesis(expr)
			}
			b.looks = append(b.looks, look{len(b.text), rest[len("(?=") : n-1], rest[2] == '!'})
			if n < len(rest) && strings.IndexByte("*+?{", rest[n]) >= 0 {
				return nil, errors.New("a look-ahead cannot be repeated")
			}
			b.text += "(?:)" // keeps what is before it apart from what is after it
		case depth == 0 && rest[0] == '|':
			list, b = append(list, b), branch{text: set}
		default:
			switch rest[0] {
			case '(':
				if depth == 0 {
					set += flags.FindString(rest)
				}
				depth++
			case ')':
				depth--
			}
			b.text += rest[:n]
		}
		rest = rest[n:]
	}
	return append(list, b), nil
}

func isLookAhead(s string) bool { return strings.HasPrefix(s, "(?=") || strings.HasPrefix(s, "(?!") }

// compile returns the tests for a branch: for its text, and for each look-ahead, which must
// have a fixed place.
func (b *branch) compile() ([]test, error) {
	first, err := newTest(b.text, false)
	if err != nil {
		return nil, err
	}
	tests := []test{first}
	for _, l := range b.looks {
		before, err := syntax.Parse(b.text[:l.at], syntax.Perl)
		if err != nil || !beginsName(before) || width(before) < 0 {
			return nil, errLookAhead
		}
		t, err := newTest(b.text[:l.at]+"(?:"+l.body+")", l.not)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	return tests, nil
}

func beginsName(re *syntax.Regexp) bool {
	return re.Op == syntax.OpBeginText || re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpBeginText
}

// width is the number of characters that all matches have, <0 if they differ.
func width(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return 0
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture:
		return width(re.Sub[0])
	case syntax.OpRepeat:
		if one := width(re.Sub[0]); one >= 0 && re.Min == re.Max {
			return one * re.Min
		}
	case syntax.OpConcat:
		sum := 0
		for _, sub := range re.Sub {
			one := width(sub)
			if one < 0 {
				return -1
			}
			sum += one
		}
		return sum
	case syntax.OpAlternate:
		first := width(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			if width(sub) != first {
				return -1
			}
		}
		return first
	}
	return -1
}

// token is the length of what begins s: an escape, a quotation (\Q...\E), a character class or
// one octet.
func token(s string) int {
	switch {
	case strings.HasPrefix(s, `\Q`):
		if n := strings.Index(s, `\E`); n >= 0 {
			return n + len(`\E`)
		}
		return len(s)
	case s[0] == '\\':
		return min(2, len(s))
	case s[0] == '[':
		return class(s)
	}
	return 1
}

// class is the length of the character class that begins s.
func class(s string) int {
	n := len("[")
	if strings.HasPrefix(s[n:], "^") {
		n++
	}
	for first := true; n < len(s); first = false {
		switch {
		case s[n] == '\\':
			n++
		case strings.HasPrefix(s[n:], "[:"):
			if end := strings.Index(s[n:], ":]"); end > 0 {
				n += end + 1
			}
		case s[n] == ']' && !first:
			return n + 1
		}
		n++
	}
	return len(s)
}

// group is the length of the group that begins s, <0 if it does not end.
func group(s string) int {
	depth := 0
	for n := 0; n < len(s); n += token(s[n:]) {
		switch s[n] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return n + 1
			}
		}
	}
	return -1
}

func missingParenthesis(expr string) error { return fmt.Errorf(`{"missing )",%d}`, len(expr)) } // PCRE's reason and offset

var errLookAhead = errors.New(`a look-ahead is possible only at a fixed place in the name, such as in ^(?!x).* or ^orders\.(?!x).*; ` +
	`for names that do not contain x write ^(?!.*x), and for names that do not end with x, ^(?!.*x$)`)

// foreign lists what PCRE has and Go's regexp has not, and what to write instead.
var foreign = []struct{ starts, problem string }{
	{"(?=", errLookAhead.Error()},
	{"(?!", errLookAhead.Error()},
	{"(?<=", "look-behind is not supported: write what is before as part of the pattern"},
	{"(?<!", "look-behind is not supported: for names that do not end with x, write ^(?!.*x$)"},
	{"(?>", "atomic groups are not supported: write (?:...)"},
	{"(?#", "comments are not supported: leave them out"},
	{"(?(", "conditions are not supported: write the alternatives, (?:...|...)"},
	{"(?|", "branch reset is not supported: write (?:...)"},
	{"(?P=", noReferences},
	{`\k`, noReferences},
	{`\g`, noReferences},
	{`\Z`, `\Z is not supported: write $`},
	{`\h`, `\h is not supported: write [ \t]`},
	{`\R`, `\R is not supported: write [\r\n]`},
	{"*+", "possessive repetition is not supported: write *"},
	{"++", "possessive repetition is not supported: write +"},
	{"?+", "possessive repetition is not supported: write ?"},
	{"}+", "possessive repetition is not supported: leave out the +"},
}

const noReferences = "back references are not supported: write the alternatives, (?:a-a|b-b)"

var numbered = regexp.MustCompile(`^\\[1-9]`) // a back reference

// explained says what is wrong with an expression that Go's regexp does not accept.
func explained(expr string, err error) error {
	var mistake *syntax.Error
	if !errors.As(err, &mistake) {
		return err
	}
	if mistake.Code == syntax.ErrMissingParen {
		return missingParenthesis(expr)
	}
	for n := 0; n < len(expr); n += token(expr[n:]) {
		if numbered.MatchString(expr[n:]) {
			return errors.New(noReferences)
		}
		for _, f := range foreign {
			if strings.HasPrefix(expr[n:], f.starts) {
				return errors.New(f.problem)
			}
		}
	}
	return fmt.Errorf("%s: %s; patterns have the syntax of RE2", mistake.Code, mistake.Expr)
}
