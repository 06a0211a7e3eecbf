package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// backtrackingLimit bounds one match; beyond it the name does not match, as
// beyond PCRE's match limit in RabbitMQ. Names are 255 bytes at most.
const backtrackingLimit = 100 * time.Millisecond

// Pattern is a compiled regular expression.
type Pattern struct {
	linear       *regexp.Regexp
	backtracking *regexp2.Regexp // where linear is nil
}

// Error says what is wrong with an expression and where, as PCRE tells it.
type Error struct {
	Reason string
	Offset int // bytes from the start
}

// Error is RabbitMQ's way to print it: {"missing )",1}.
func (e *Error) Error() string { return fmt.Sprintf("{%q,%d}", e.Reason, e.Offset) }

// Compile reads an expression. The error is an *Error.
func Compile(expr string) (*Pattern, error) {
	linear, err := regexp.Compile(expr)
	if err == nil {
		return &Pattern{linear: linear}, nil
	}
	backtracking, other := regexp2.Compile(expr)
	if other != nil {
		return nil, explain(expr, err, other)
	}
	backtracking.MatchTimeout = backtrackingLimit
	return &Pattern{backtracking: backtracking}, nil
}

// Match says whether the expression matches somewhere in name.
func (p *Pattern) Match(name string) bool {
	if p.linear != nil {
		return p.linear.MatchString(name)
	}
	found, err := p.backtracking.MatchString(name)
	return found && err == nil
}

// explain puts the errors of both parsers into PCRE's words.
func explain(expr string, err, other error) *Error {
	var wrong *syntax.Error
	if !errors.As(err, &wrong) {
		return &Error{err.Error(), 0}
	}
	end := len(expr)
	at := max(strings.Index(expr, wrong.Expr), 0)
	switch wrong.Code {
	case syntax.ErrMissingParen:
		return &Error{"missing )", end}
	case syntax.ErrInvalidPerlOp:
		if strings.Contains(other.Error(), "closing )") {
			return &Error{"missing )", end}
		}
		return &Error{"unrecognized character after (? or (?-", at + 2}
	case syntax.ErrUnexpectedParen:
		return &Error{"unmatched parentheses", unmatched(expr)}
	case syntax.ErrMissingBracket:
		return &Error{"missing terminating ] for character class", end}
	case syntax.ErrMissingRepeatArgument:
		return &Error{"nothing to repeat", at}
	case syntax.ErrInvalidRepeatOp:
		return &Error{"nothing to repeat", at + 1}
	case syntax.ErrTrailingBackslash:
		return &Error{`\ at end of pattern`, end}
	case syntax.ErrInvalidCharRange:
		if strings.HasPrefix(wrong.Expr, `\`) {
			return &Error{`unknown property name after \P or \p`, at + len(wrong.Expr) - 1}
		}
		return &Error{"range out of order in character class", at + len(wrong.Expr) - 1}
	}
	return &Error{string(wrong.Code), at}
}

// unmatched is the offset of the first parenthesis that closes nothing.
func unmatched(expr string) int {
	depth, class := 0, false
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return len(expr)
}
