package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Class is the kind of a queue or exchange, as far as policies distinguish it.
type Class uint8

const (
	ClassicQueue Class = iota
	QuorumQueue
	Stream
	Exchange
)

// governs reports whether the policy, without others, applies to what is of a class and has a name.
func (p *Policy) governs(c Class, name string) bool {
	return p.passes&(1<<c) == 0 && p.matcher.Match(name) // which matches nothing if it is not in force
}

// Set holds the policies of one kind in a virtual host, the ones with precedence first. The
// zero Set is empty. A Set is never changed: With and Without return
// new ones, so that a change can be tried before it is made.
type Set []*Policy

// compare orders policies by precedence. Of equals RabbitMQ takes any, and Curfew the last name.
func compare(a, b *Policy) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(b.Name, a.Name))
}

// With adds policies, and replaces those of the same names. They must come from Check or
// Decode, or be NotInForce.
func (s Set) With(list ...Policy) Set {
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	s = s.Without(names...)
	for i := range list {
		s = append(s, &list[i])
	}
	slices.SortFunc(s, compare)
	return s
}

// Without returns the set without the policies of these names.
func (s Set) Without(names ...string) Set {
	gone := map[string]bool{}
	for _, name := range names {
		gone[name] = true
	}
	return slices.DeleteFunc(slices.Clone(s), func(p *Policy) bool { return gone[p.Name] })
}

// Named returns the policy of that name, or nil.
func (s Set) Named(name string) *Policy {
	for _, p := range s {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Governing returns the policy that applies to what is of a class and has a name; nil if none does.
func (s Set) Governing(c Class, name string) *Policy {
	for _, p := range s {
		if p.governs(c, name) {
			return p
		}
	}
	return nil
}

// Change finds out what a change of a Set means for each name. A policy that stays is not matched
// again with a name that it did not match before. So adding a policy matches it alone, once with
// each name; taking one away, only the names that it governed, with those of less precedence.
type Change struct {
	to      Set
	added   Set // in order
	stays   map[*Policy]bool
	matches int // so far
}

// NewChange is the change of from to to.
func NewChange(from, to Set) *Change {
	c := &Change{to: to, stays: map[*Policy]bool{}}
	for _, p := range to {
		c.stays[p] = true
		if !slices.Contains(from, p) {
			c.added = append(c.added, p)
		}
	}
	return c
}

// Governing returns the policy that applies, after the change, to what is of a class and has a
// name; nil if none does. was is the one that applied before.
func (c *Change) Governing(was *Policy, class Class, name string) *Policy {
	for _, p := range c.added {
		if was != nil && compare(was, p) < 0 {
			break
		}
		if c.match(p, class, name) {
			return p
		}
	}
	if was == nil || c.stays[was] {
		return was
	}
	after, _ := slices.BinarySearchFunc(c.to, was, compare)
	for _, p := range c.to[after:] {
		if c.match(p, class, name) {
			return p
		}
	}
	return nil
}

func (c *Change) match(p *Policy, class Class, name string) bool {
	c.matches++
	return p.governs(class, name)
}
