package pattern

import (
	"fmt"
	"strings"
)

// Error reports what is wrong with an expression.
type Error struct {
	Reason string
	Offset int // in bytes, 0 if unknown
}

// Error returns the error in the form in which RabbitMQ prints it: {"missing )",1}.
func (e *Error) Error() string { return fmt.Sprintf("{%q,%d}", e.Reason, e.Offset) }

// newError returns the error of a parser. The text of the most common mistake is RabbitMQ's,
// which prints PCRE's messages; other mistakes have the parser's own words.
func newError(expr string, err error) *Error {
	reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	reason, _, _ = strings.Cut(reason, " in `")
	if reason == "missing closing )" {
		return &Error{"missing )", len(expr)}
	}
	return &Error{reason, 0}
}

// nestsTooDeep reports whether more than maxNesting parentheses are open at the same time.
func nestsTooDeep(expr string) bool {
	depth, class := 0, false
	for i := 0; i < len(expr) && depth <= maxNesting; i++ {
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
			depth--
		}
	}
	return depth > maxNesting
}
