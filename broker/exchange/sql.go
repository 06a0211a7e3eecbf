package exchange

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"curfew/broker/amqp"
)

// SQLArg is the argument of a binding to a headers exchange that compares the headers by an expression (Service Bus:
// Subscription rule SQL filter syntax), beside what the other arguments compare. Its predicates are
//
//	a = b   a <> b   a != b   a < b   a <= b   a > b   a >= b
//	a IS [NOT] NULL   EXISTS (a)   a [NOT] IN (b, c)   a [NOT] LIKE 'x%y_'
//
// joined by NOT, AND, OR and parentheses. Values are texts, numbers, TRUE, FALSE, NULL and headers: name, [any name] or "any name",
// or sys.Label and others for the system properties of a message of Service Bus. What a message does not have is unknown, and so
// are values of different types when they are compared: neither the predicate nor its NOT is true.
const SQLArg = "x-sql-filter"

// SQLFootprint is how much memory a compiled expression takes at most, in bytes.
func SQLFootprint(args amqp.Table) int64 {
	text, _ := args[SQLArg].(string)
	return 128 * int64(min(len(text), maxSQL))
}

const (
	maxSQL  = 1024 // octets of an expression, as in Service Bus
	maxLike = 512  // octets of a text that LIKE compares: a longer one is unknown
)

// truth is of three values: NOT is its negation, AND the least, OR the greatest.
type truth int8

const (
	no truth = iota - 1
	unknown
	yes
)

func truthOf(is bool) truth {
	if is {
		return yes
	}
	return no
}

type (
	predicate func(amqp.Table) truth
	operand   func(amqp.Table) any // nil: there is none
)

// systemNames are the system properties, which have no case. They are headers: x-sys-Label.
var systemNames = []string{"CorrelationId", "MessageId", "To", "ReplyTo", "Label", "SessionId", "ReplyToSessionId", "ContentType"}

var sqlTokens = regexp.MustCompile(`^(?:'(?:[^']|'')*'|\[[^\]]+\]|"[^"]+"|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z_$][\w$]*|<>|!=|[<>]=|[-=<>(),.])`)

// sqlParser parses an expression by recursive descent: each method takes what it parses from rest.
type sqlParser struct {
	text, rest string
	err        error // the first one
}

// parseSQL compiles an expression. With an error it is never true.
func parseSQL(text string) (predicate, error) {
	never := func(amqp.Table) truth { return unknown }
	if len(text) > maxSQL {
		return never, fmt.Errorf("the SQL filter has more than %d octets", maxSQL)
	}
	p := sqlParser{text: text, rest: strings.TrimSpace(text)}
	is := p.or()
	if p.rest != "" {
		p.fail("an operator")
	}
	if p.err != nil {
		return never, p.err
	}
	return is, nil
}

func (p *sqlParser) fail(wanted string) {
	if p.err == nil {
		p.err = fmt.Errorf("the SQL filter is not supported at its octet %d: expected %s", len(p.text)-len(p.rest)+1, wanted)
	}
}

func (p *sqlParser) next() (token string) {
	token = sqlTokens.FindString(p.rest)
	p.rest = strings.TrimSpace(p.rest[len(token):])
	return token
}

// take takes one of those words or symbols; "": it is another.
func (p *sqlParser) take(words ...string) string {
	token := sqlTokens.FindString(p.rest)
	for _, w := range words {
		if strings.EqualFold(token, w) {
			p.next()
			return w
		}
	}
	return ""
}

func (p *sqlParser) expect(word string) {
	if p.take(word) == "" {
		p.fail(word)
	}
}

func (p *sqlParser) or() predicate {
	is := p.and()
	for p.take("OR") != "" {
		a, b := is, p.and()
		is = func(h amqp.Table) truth { return max(a(h), b(h)) }
	}
	return is
}

func (p *sqlParser) and() predicate {
	is := p.not()
	for p.take("AND") != "" {
		a, b := is, p.not()
		is = func(h amqp.Table) truth { return min(a(h), b(h)) }
	}
	return is
}

func (p *sqlParser) not() predicate {
	switch p.take("NOT", "(") {
	case "NOT":
		return negated(p.not(), true)
	case "(":
		is := p.or()
		p.expect(")")
		return is
	}
	return p.comparison()
}

func negated(is predicate, negate bool) predicate {
	if !negate {
		return is
	}
	return func(h amqp.Table) truth { return -is(h) }
}

func (p *sqlParser) comparison() predicate {
	if p.take("EXISTS") != "" {
		p.expect("(")
		a := p.value()
		p.expect(")")
		return func(h amqp.Table) truth { return truthOf(a(h) != nil) }
	}
	a := p.value()
	if p.take("IS") != "" {
		negate := p.take("NOT") != ""
		p.expect("NULL")
		return func(h amqp.Table) truth { return truthOf((a(h) == nil) != negate) }
	}
	negate := p.take("NOT") != ""
	switch op := p.take("IN", "LIKE", "=", "<>", "!=", "<=", ">=", "<", ">"); {
	case op == "IN":
		return negated(p.in(a), negate)
	case op == "LIKE":
		return negated(p.like(a), negate)
	case op == "" || negate:
		p.fail("a comparison")
		return nil
	default:
		return compared(a, op, p.value())
	}
}

func (p *sqlParser) in(a operand) (is predicate) {
	p.expect("(")
	is = compared(a, "=", p.value())
	for p.take(",") != "" {
		was, one := is, compared(a, "=", p.value())
		is = func(h amqp.Table) truth { return max(was(h), one(h)) }
	}
	p.expect(")")
	return is
}

func compared(a operand, op string, b operand) predicate {
	return func(h amqp.Table) truth {
		order, known := compareValues(a(h), b(h))
		switch {
		case !known:
			return unknown
		case order == 0:
			return truthOf(op != "<>" && op != "!=" && op != "<" && op != ">")
		case order < 0:
			return truthOf(op[0] == '<' || op == "!=")
		}
		return truthOf(op[0] == '>' || op == "!=" || op == "<>")
	}
}

// compareValues compares what is of one type; of booleans, false is less.
func compareValues(a, b any) (order int, known bool) {
	switch a := a.(type) {
	case string:
		b, is := b.(string)
		return strings.Compare(a, b), is
	case bool:
		b, is := b.(bool)
		return int(truthOf(a)-truthOf(b)) / 2, is
	case int64:
		if b, is := b.(int64); is {
			return cmp.Compare(a, b), true
		}
	}
	x, isX := number(a)
	y, isY := number(b)
	return cmp.Compare(x, y), isX && isY
}

// number is an integer or a float; false: it is none, or NaN.
func number(v any) (float64, bool) {
	if n, is := v.(int64); is {
		return float64(n), true
	}
	f, is := v.(float64)
	return f, is && f == f
}

func (p *sqlParser) value() operand {
	start := *p
	sign := p.take("-")
	token := p.next()
	var v any
	switch upper := strings.ToUpper(token); {
	case token != "" && token[0] >= '0' && token[0] <= '9':
		n, err := strconv.ParseInt(sign+token, 10, 64)
		if v = n; err != nil {
			v, _ = strconv.ParseFloat(sign+token, 64) // beyond its range: infinite
		}
	case sign == "" && (upper == "TRUE" || upper == "FALSE"):
		v = upper == "TRUE"
	case sign == "" && upper == "NULL":
	case sign == "" && token != "" && token[0] == '\'':
		v = unquoted(token)
	default:
		*p = start
		return p.property()
	}
	return func(amqp.Table) any { return v }
}

func unquoted(token string) string {
	return strings.ReplaceAll(token[1:len(token)-1], "''", "'")
}

// property parses the name of a header, or that of a system property.
func (p *sqlParser) property() operand {
	name := p.name()
	if scope := strings.ToLower(name); p.take(".") != "" {
		name = p.name()
		at := slices.IndexFunc(systemNames, func(s string) bool { return strings.EqualFold(s, name) })
		switch {
		case scope == "sys" && at >= 0:
			name = "x-sys-" + systemNames[at]
		case scope != "user":
			p.fail("user. or sys. and a name, of which " + strings.Join(systemNames, ", ") + " are compared")
		}
	}
	return func(h amqp.Table) any {
		v := h[name]
		if n, ok := amqp.Integer(v); ok {
			return n
		}
		if f, ok := float(v); ok {
			return f
		}
		if b, ok := v.([]byte); ok {
			return string(b)
		}
		return v
	}
}

func (p *sqlParser) name() string {
	token := sqlTokens.FindString(p.rest)
	switch {
	case token == "" || strings.ContainsRune("'<>!=(),.-0123456789", rune(token[0])):
		p.fail("a value")
		return ""
	case token[0] == '[' || token[0] == '"':
		p.next()
		return token[1 : len(token)-1]
	}
	return p.next()
}

// like compares with a pattern, in which % is any text and _ any character.
func (p *sqlParser) like(a operand) predicate {
	token := p.next()
	if token == "" || token[0] != '\'' || !utf8.ValidString(token) {
		p.fail("a pattern in UTF-8 between single quotes")
		return nil
	}
	pattern := unquoted(token)
	return func(h amqp.Table) truth {
		s, is := a(h).(string)
		if !is || len(s) > maxLike {
			return unknown
		}
		return truthOf(alike(s, pattern))
	}
}

// alike reports whether a text is as a pattern says. The work is at most the length of the one by that of the other: where the text differs, only the
// last % is tried again, one character later.
func alike(s, pattern string) bool {
	i, j := 0, 0
	from, after := 0, -1 // where the text of the last % ends, and what comes after it in the pattern
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '%':
			j++
			from, after = i, j
		case j < len(pattern) && pattern[j] == '_':
			_, size := utf8.DecodeRuneInString(s[i:])
			i, j = i+size, j+1
		case j < len(pattern) && pattern[j] == s[i]:
			i, j = i+1, j+1
		case after < 0:
			return false
		default:
			_, size := utf8.DecodeRuneInString(s[from:])
			from += size
			i, j = from, after
		}
	}
	return strings.Trim(pattern[j:], "%") == ""
}
