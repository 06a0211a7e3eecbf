package exchange

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"curfew/broker/amqp"
)

// headers routes by comparing the message's headers with the binding's arguments (AMQP
// 0-9-1 §3.1.3.4; RabbitMQ's all-with-x and any-with-x). The routing key is not compared,
// but it is part of a binding's identity.
type headers[D comparable] struct {
	bindingTable[D]
	dests []*headersTarget[D] // in the order of the first binding
	index map[D]*headersTarget[D]
}

// headersTarget is a destination with one or more rules; one that matches is enough.
type headersTarget[D comparable] struct {
	d     D
	rules []rule
}

func newHeaders[D comparable]() *headers[D] {
	return &headers[D]{bindingTable: newBindingTable[D](), index: make(map[D]*headersTarget[D])}
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
		r.removeTarget(t)
	}
	return bound, true
}

func (r *headers[D]) UnbindAll(d D) []Binding[D] {
	removed := r.removeAll(d, func(string) {})
	if len(removed) > 0 {
		r.removeTarget(r.index[d])
	}
	return removed
}

func (r *headers[D]) removeTarget(t *headersTarget[D]) {
	delete(r.index, t.d)
	r.dests = withoutItem(r.dests, t)
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

// rule is the form of a binding's arguments that is used for matching.
type rule struct {
	key  string
	args amqp.Table
	any  bool // one matching field is enough; otherwise all must match
	want []field
}

// field is one argument. A void value only requires that the header exists.
type field struct {
	name  string
	value any
}

const matchArg = "x-match"

// compile omits x-match itself and, unless x-match ends in -with-x, every argument that
// begins with "x-".
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

// matches reports whether the headers match. Without fields, "all" always matches and "any"
// never.
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

// CheckArgs returns what is wrong with the arguments of a binding to an exchange of kind k,
// or nil. Only a headers exchange uses them. The text is RabbitMQ's, for
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
