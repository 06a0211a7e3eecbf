package deadletters

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"curfew/broker/queue"
)

// Filter chooses dead letters: an expression such as
//
//	reason == "expired" && headers["tenant"] == "a" && json.customer.id == 7
//
// with the words in Fields, Functions and Operators. The empty Filter matches every message. A comparison with something that the message does
// not have, or that has another kind, is false; an expression that still cannot be computed for a message does not match it.
//
// Whatever the expression and the message are, the work for one message is bounded by the product of their sizes: an expression compares and
// does not calculate, a predicate looks at nothing large but its element, and patterns are RE2 and of limited size.
type Filter string

// FilterError says what is wrong with a filter, and where. Its text names the position.
type FilterError struct {
	At   int // character of the expression, from 1
	Text string
}

func (e *FilterError) Error() string { return fmt.Sprintf("filter, character %d: %s", e.At, e.Text) }

const (
	// maxFilter is how long an expression may be, in bytes, and maxNodes how many words and values it may have.
	maxFilter = 16 << 10
	maxNodes  = 1000
	// maxFiltered is how much of a compressed body filters unpack, and maxJSON how long a body may be for the field json, in bytes.
	maxFiltered = 4 << 20
	maxJSON     = 1 << 20
	// maxMemory is how many elements expr's machine may allocate for one message.
	maxMemory = 100_000
)

// Check reports what is wrong with the filter. The error is a *FilterError.
func (f Filter) Check() error {
	_, err := f.compile(time.Time{})
	return err
}

// And is the filter that matches what both match.
func (f Filter) And(other Filter) Filter {
	switch {
	case f == "":
		return other
	case other == "":
		return f
	}
	return f.operand() + " && " + other.operand()
}

// loose is in filters that have to stand in parentheses in a longer one: what binds less than &&.
var loose = regexp.MustCompile(`[|?;]|\bor\b`)

// operand is the filter as a part of a longer one.
func (f Filter) operand() Filter {
	switch {
	case strings.Contains(string(f), "/"): // a comment, perhaps: it ends with its line
		return "(" + f + "\n)"
	case loose.MatchString(string(f)):
		return "(" + f + ")"
	}
	return f
}

// Equals is the filter `field == value`. It may stand between single quotes in a shell.
func Equals(field, value string) Filter {
	text := strings.ReplaceAll(strconv.Quote(value), "'", `\x27`)
	if !utf8.ValidString(value) {
		text = "b" + text // bytes
	}
	return Filter(field + " == " + text)
}

// Numbered is the filter for messages by their numbers in the queue.
func Numbered(seqs ...queue.Seq) Filter {
	numbers := make([]string, len(seqs))
	for i, s := range seqs {
		numbers[i] = strconv.FormatInt(int64(s), 10)
	}
	return Filter("seq in [" + strings.Join(numbers, ", ") + "]")
}

// matcher is a compiled filter. It is not safe for concurrent use.
type matcher struct {
	seqs        []queue.Seq // in the order of delivery; nil: the filter names no numbers
	program     *vm.Program // nil: it matches every message
	machine     vm.VM
	fields      []*Field        // that the expression uses
	whole       bool            // it needs the whole body
	headers     map[string]bool // that it names
	everyHeader bool            // it is about all headers
	env         map[string]any
}

// compile checks the filter, as Check does. now is the instant that ago counts from.
func (f Filter) compile(now time.Time) (m *matcher, err error) {
	m = &matcher{machine: vm.VM{MemoryBudget: maxMemory}, env: map[string]any{}, headers: map[string]bool{}}
	text := string(f)
	if strings.TrimSpace(text) == "" {
		return m, nil
	}
	if len(text) > maxFilter {
		return nil, &FilterError{maxFilter + 1, fmt.Sprintf("it has %d bytes, more than %d", len(text), maxFilter)}
	}
	tree, err := parse(text)
	if err != nil {
		return nil, positioned(err)
	}
	c := checker{matcher: m, now: now}
	c.check(tree.Node, false)
	if c.err != nil {
		return nil, c.err
	}
	m.seqs = numbersIn(tree.Node)
	if m.program, err = expr.Compile(text, append(options(), expr.Patch(&patcher{now}))...); err != nil {
		return nil, positioned(err)
	}
	return m, nil
}

// positioned is an error of expr's with its place.
func positioned(err error) error {
	e, ok := errors.AsType[*file.Error](err)
	if !ok {
		return &FilterError{1, err.Error()}
	}
	return &FilterError{e.From + 1, strings.Replace(e.Message, "compilation failed: ", "", 1)}
}

// inOrder returns the numbers in the order of delivery, each once.
func inOrder(seqs []queue.Seq) []queue.Seq {
	slices.SortFunc(seqs, delivered)
	return slices.Compact(seqs)
}

// delivered compares messages by the order of delivery: a higher priority comes first.
func delivered(a, b queue.Seq) int {
	if pa, pb := a.Priority(), b.Priority(); pa != pb {
		return int(pb) - int(pa)
	}
	if a < b {
		return -1
	}
	return int(min(a-b, 1))
}

// wants reports whether the filter may look at a header.
func (m *matcher) wants(name []byte) bool { return m.headers[string(name)] || deathHeaders(name) }

// matches needs the whole body if m.whole is true.
func (m *matcher) matches(l *Letter) bool {
	if m.program == nil {
		return true
	}
	for _, f := range m.fields {
		m.env[f.Name] = f.of(l)
	}
	is, err := m.machine.Run(m.program, m.env)
	return err == nil && is == true
}
