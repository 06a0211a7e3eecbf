package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"curfew/broker/amqp"
)

// headers routes by comparing the message's headers with the binding's arguments (AMQP
// 0-9-1 §3.1.3.4; RabbitMQ's all-with-x and any-with-x). The routing key is not compared,
// but it is part of a binding's identity.
//
// A rule stands under the hash of one of its fields, and a rule that any field satisfies under
// each. Only the rules under a header of the message are compared with it. Of the fields of a
// rule, the one is taken that the fewest other rules stand under.
type headers[D comparable] struct {
	bindingTable[D]
	dests  map[D]*headersTarget[D]
	made   uint64                   // targets
	always set[*rule[D]]            // without fields: they match everything
	under  map[uint64]set[*rule[D]] // the others, without empty sets
	marks  marks
}

// headersTarget is a destination with one or more rules; one that matches is enough.
type headersTarget[D comparable] struct {
	d       D
	number  uint64 // in the order of the first binding: a route has its targets in this order
	indexed int    // how often it can be found: once for each rule, and for each field of a rule that any satisfies
	mark    int    // noMark while indexed <= 1
}

// rule is the form of a binding's arguments that is used for matching.
type rule[D comparable] struct {
	to    *headersTarget[D]
	any   bool // one matching field is enough; otherwise all must match
	want  []field
	sql   predicate // compares the headers, too; nil: none does
	steps int       // of a Pace, to compare it
	under uint64    // the field's hash that it stands under, unless any
}

// field is one argument. A void value only requires that the header exists.
type field struct {
	name  string
	value any
}

// Bind treats an x-match that CheckArgs refuses as "all".
func (r *headers[D]) Bind(d D, key string, args amqp.Table) bool {
	added, _ := r.add(d, key, args)
	if added == nil {
		return false
	}
	t := r.dests[d]
	if t == nil {
		t = &headersTarget[D]{d: d, number: r.made, mark: noMark}
		r.dests[d] = t
		r.made++
	}
	added.rule = compile(t, args)
	r.insert(added.rule)
	return true
}

func (r *headers[D]) unindex(x *binding[D], _ bool) {
	r.drop(x.rule)
	if _, bound := r.bound[x.Destination]; !bound {
		delete(r.dests, x.Destination)
	}
}

// insert adds a rule to the index.
func (r *headers[D]) insert(u *rule[D]) {
	switch {
	case u.any:
		for _, f := range u.want {
			r.stand(f.hash(), u)
		}
		return
	case len(u.want) == 0:
		r.always.add(u)
		r.found(u.to, 1)
		return
	}
	u.under = u.want[0].hash()
	for _, f := range u.want[1:] {
		if hash := f.hash(); len(r.under[hash].list) < len(r.under[u.under].list) {
			u.under = hash
		}
	}
	r.stand(u.under, u)
}

// drop undoes insert.
func (r *headers[D]) drop(u *rule[D]) {
	switch {
	case u.any:
		for _, f := range u.want {
			r.leave(f.hash(), u)
		}
	case len(u.want) == 0:
		r.always.remove(u)
		r.found(u.to, -1)
	default:
		r.leave(u.under, u)
	}
}

func (r *headers[D]) stand(hash uint64, u *rule[D]) {
	s := r.under[hash]
	s.add(u)
	r.under[hash] = s
	r.found(u.to, 1)
}

func (r *headers[D]) leave(hash uint64, u *rule[D]) {
	s := r.under[hash]
	if s.remove(u); len(s.list) == 0 {
		delete(r.under, hash)
	} else {
		r.under[hash] = s
	}
	r.found(u.to, -1)
}

// found notes that t can be found more often or, if by is negative, less often.
func (r *headers[D]) found(t *headersTarget[D], by int) {
	t.indexed += by
	switch {
	case t.indexed > 1 && t.mark == noMark:
		t.mark = r.marks.allocate()
	case t.indexed <= 1 && t.mark != noMark:
		r.marks.release(t.mark)
		t.mark = noMark
	}
}

// Route is paced as that of a topic exchange, since many rules may stand under one header.
func (r *headers[D]) Route(_ []byte, fields func() amqp.Table, out []D, p *Pace) []D {
	if r.n == 0 {
		return out
	}
	var few [8]*headersTarget[D]
	h, found := fields(), few[:0]
	p.Step(len(h) / 8)
	for {
		left := p.left()
		s := search[D]{h: h, found: &found, progress: progress{left: left}}
		switch n := r.marks.next; {
		case n == 0:
			r.search(&s)
		case n <= stackMarks:
			s.left = r.searchMarked(s)
		default:
			s.met = make([]uint64, (n+63)/64)
			r.search(&s)
		}
		if p.Step(left - s.left); s.left > 0 {
			break
		}
		if found = found[:0]; left == p.most() {
			r.search(&search[D]{h: h, found: &found, progress: progress{left: p.left(), pace: p, seen: map[any]struct{}{}}})
			break
		}
	}
	slices.SortFunc(found, func(a, b *headersTarget[D]) int { return cmp.Compare(a.number, b.number) })
	for _, t := range found {
		out = append(out, t.d)
	}
	return out
}

// search is one Route of a headers exchange, as walk is one of a topic exchange.
type search[D comparable] struct {
	h     amqp.Table
	found *[]*headersTarget[D]
	progress
}

// searchMarked is search with a bitmap on the stack.
func (r *headers[D]) searchMarked(s search[D]) (left int) {
	var met [stackMarks / 64]uint64
	s.met = met[:]
	r.search(&s)
	return s.left
}

func (r *headers[D]) search(s *search[D]) {
	s.compare(r.always.list)
	for name, value := range s.h {
		hash := field{name, value}.hash()
		s.compare(r.under[hash].list)
		if exists := (field{name, nil}).hash(); exists != hash {
			s.compare(r.under[exists].list)
		}
	}
}

// compare adds the targets of those rules that match.
func (s *search[D]) compare(rules []*rule[D]) {
	if s.pace != nil {
		rules = slices.Clone(rules) // they may change in a pause
	}
	for _, u := range rules {
		if !s.step(u.steps) {
			return
		}
		if !s.reached(u.to.mark, u.to) && u.matches(s.h) {
			s.reach(u.to.mark, u.to)
			*s.found = append(*s.found, u.to)
		}
	}
}

const matchArg = "x-match"

// compile omits x-match itself and, unless x-match ends in -with-x, every argument that
// begins with "x-".
func compile[D comparable](to *headersTarget[D], args amqp.Table) *rule[D] {
	mode, _ := args[matchArg].(string)
	u := &rule[D]{to: to, any: strings.HasPrefix(mode, "any")}
	withX := strings.HasSuffix(mode, "-with-x")
	for name, value := range args {
		if name == SQLArg {
			text, _ := value.(string)
			u.sql, _ = parseSQL(text) // CheckArgs has checked it
			u.steps = 4 * len(text)   // LIKE compares each octet several times
			continue
		}
		if name == matchArg || !withX && strings.HasPrefix(name, "x-") {
			continue
		}
		u.want = append(u.want, field{name, value})
	}
	u.steps += 1 + len(u.want)/4
	return u
}

// matches reports whether the headers match. Without fields, "all" always matches and "any"
// never.
func (u *rule[D]) matches(h amqp.Table) bool {
	if u.sql != nil && u.sql(h) != yes {
		return false
	}
	for _, f := range u.want {
		if f.in(h) == u.any {
			return u.any
		}
	}
	return !u.any
}

func (f field) hash() uint64 { return maphash.String(seed, f.name)*31 + hashValue(f.value) }

func (f field) in(h amqp.Table) bool {
	value, present := h[f.name]
	return present && (f.value == nil || valuesEqual(f.value, value))
}

// CheckArgs returns what is wrong with the arguments of a binding to an exchange of kind k,
// or nil. Only a headers exchange uses them. The text is RabbitMQ's, for
// PRECONDITION_FAILED.
func CheckArgs(k Kind, args amqp.Table) error {
	if k != Headers {
		return nil
	}
	if expression, is := args[SQLArg]; is {
		text, _ := expression.(string)
		if _, err := parseSQL(text); err != nil {
			return err
		}
	}
	value, present := args[matchArg]
	if !present {
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
