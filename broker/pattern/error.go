package pattern

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// Error says what is wrong with an expression and where, as PCRE tells it.
type Error struct {
	Reason string
	Offset int // bytes from the start
}

// Error is RabbitMQ's way to print it: {"missing )",1}.
func (e *Error) Error() string { return fmt.Sprintf("{%q,%d}", e.Reason, e.Offset) }

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
	at := len(expr)
	parentheses(expr, func(i, depth int) bool {
		if depth < 0 {
			at = i
		}
		return depth >= 0
	})
	return at
}

// tooDeep finds a parenthesis that is in too many others.
func tooDeep(expr string) (at int, deep bool) {
	parentheses(expr, func(i, depth int) bool {
		at, deep = i, depth > maxNesting
		return !deep
	})
	return at, deep
}

// parentheses visits the parentheses that mean something, with how many are open
// after each, until visit returns false.
func parentheses(expr string, visit func(at, depth int) bool) {
	depth, class := 0, false
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\':
			i++
			continue
		case class:
			class = c != ']'
			continue
		case c == '[':
			class = true
			continue
		case c == '(':
			depth++
		case c == ')':
			depth--
		default:
			continue
		}
		if !visit(i, depth) {
			return
		}
	}
}
