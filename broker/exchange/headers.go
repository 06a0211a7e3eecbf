package exchange

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"curfew/broker/amqp"
)

// headers routes by comparing the message's headers with the binding's arguments (AMQP 0-9-1
// §3.1.3.4; RabbitMQ's all-with-x and any-with-x). The routing key takes no part in matching but
// is part of a binding's identity.
type headers[D comparable] struct {
	book[D]
	dests []*headersTarget[D] // in the order of the first binding
	index map[D]*headersTarget[D]
}

// headersTarget is a destination with its rules, at least one: any of them suffices.
type headersTarget[D comparable] struct {
	d     D
	rules []rule
}

func newHeaders[D comparable]() *headers[D] {
	return &headers[D]{book: newBook[D](), index: make(map[D]*headersTarget[D])}
}

// Bind treats an x-match that CheckArgs refuses as "all".
func (r *headers[D]) Bind(d D, key string, args amqp.Table) bool {
	added, _ := r.add(d, key, args)
	if !added {
		return false
	}
	t := r.index[d]
	if t == nil {
		t = &headersTarget[D]{d: d}
		r.index[d] = t
		r.dests = append(r.dests, t)
	}
	t.rules = append(t.rules, compile(key, args))
	return true
}

func (r *headers[D]) Unbind(d D, key string, args amqp.Table) (amqp.Table, bool) {
	bound, removed, _ := r.remove(d, key, args)
	if !removed {
		return nil, false
	}
	t := r.index[d]
	i := slices.IndexFunc(t.rules, func(u rule) bool { return u.key == key && ArgsEqual(u.args, args) })
	t.rules = slices.Delete(t.rules, i, i+1)
	if len(t.rules) == 0 {
		r.drop(t)
	}
	return bound, true
}

func (r *headers[D]) UnbindAll(d D) []Binding[D] {
	removed := r.removeAll(d, func(string) {})
	if len(removed) > 0 {
		r.drop(r.index[d])
	}
	return removed
}

func (r *headers[D]) drop(t *headersTarget[D]) {
	delete(r.index, t.d)
	r.dests = without(r.dests, t)
}

func (r *headers[D]) Route(_ []byte, fields func() amqp.Table, out []D) []D {
	if len(r.dests) == 0 {
		return out
	}
	h := fields()
	for _, t := range r.dests {
		if slices.ContainsFunc(t.rules, func(u rule) bool { return u.matches(h) }) {
			out = append(out, t.d)
		}
	}
	return out
}

// rule is a binding's arguments made ready for matching.
type rule struct {
	key  string
	args amqp.Table
	any  bool // one field suffices; else all are needed
	want []field
}

// field is one argument. A void value asks only that the header is present.
type field struct {
	name  string
	value any
}

const matchArg = "x-match"

// compile leaves x-match itself out of the comparison and, unless it says -with-x, every argument
// beginning "x-".
func compile(key string, args amqp.Table) rule {
	mode, _ := args[matchArg].(string)
	u := rule{key: key, args: args, any: strings.HasPrefix(mode, "any")}
	withX := strings.HasSuffix(mode, "-with-x")
	for name, value := range args {
		if name == matchArg || !withX && strings.HasPrefix(name, "x-") {
			continue
		}
		u.want = append(u.want, field{name, value})
	}
	return u
}

// matches: with nothing to compare, "all" matches every message and "any" none.
func (u *rule) matches(h amqp.Table) bool {
	for _, f := range u.want {
		if f.in(h) == u.any {
			return u.any
		}
	}
	return !u.any
}

func (f field) in(h amqp.Table) bool {
	value, present := h[f.name]
	return present && (f.value == nil || valuesEqual(f.value, value))
}

// CheckArgs tells what is wrong with the arguments of a binding to an exchange of kind k; nil if
// nothing. Only a headers exchange looks at them. The text is RabbitMQ's for a
// PRECONDITION_FAILED.
func CheckArgs(k Kind, args amqp.Table) error {
	value, present := args[matchArg]
	if k != Headers || !present {
		return nil
	}
	var text string
	switch mode, isText := value.(string); {
	case !isText:
		text = fmt.Sprintf("Invalid x-match field type %s (value %v); expected longstr", amqp.TypeName(value), value)
	case mode != "all" && mode != "any" && mode != "all-with-x" && mode != "any-with-x":
		text = fmt.Sprintf("Invalid x-match field value <<%q>>; expected all, any, all-with-x, or any-with-x", mode)
	default:
		return nil
	}
	return errors.New(text)
}
