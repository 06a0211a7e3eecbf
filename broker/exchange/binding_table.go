package exchange

import (
	"hash/maphash"

	"curfew/broker/amqp"
)

// binding is one in a bindingTable.
type binding[D comparable] struct {
	Binding[D]
	next *binding[D] // of the destination's with the same hash
	rule *rule[D]    // by which a headers exchange matches it; nil for other types
}

// boundTo are the bindings of one destination.
type boundTo[D comparable] struct {
	byHash map[uint64]*binding[D] // of key and arguments
	keys   map[string]int         // how many bindings have each key
}

func hashBinding(key string, args amqp.Table) uint64 {
	return maphash.String(seed, key) + hashArgs(args)
}

func (t *boundTo[D]) find(hash uint64, key string, args amqp.Table) *binding[D] {
	x := t.byHash[hash]
	for x != nil && (x.Key != key || !ArgsEqual(x.Args, args)) {
		x = x.next
	}
	return x
}

// bindingTable holds every binding by its identity: destination, key and arguments. The index of
// most exchange types holds a destination once per key, whatever the number of its argument
// tables. So the table reports the first binding and the last one of a destination under a key.
type bindingTable[D comparable] struct {
	bound map[D]*boundTo[D] // without empty ones
	n     int
	gone  func(x *binding[D], last bool) // called for each that is removed; last: of its key
}

// add adds a binding, and returns nil if there is an equal one. first: d had none under this key before.
func (b *bindingTable[D]) add(d D, key string, args amqp.Table) (added *binding[D], first bool) {
	t, hash := b.bound[d], hashBinding(key, args)
	if t == nil {
		if b.bound == nil {
			b.bound = map[D]*boundTo[D]{}
		}
		t = &boundTo[D]{map[uint64]*binding[D]{}, map[string]int{}}
		b.bound[d] = t
	} else if t.find(hash, key, args) != nil {
		return nil, false
	}
	x := &binding[D]{Binding: Binding[D]{d, key, args}, next: t.byHash[hash]}
	t.byHash[hash] = x
	t.keys[key]++
	b.n++
	return x, t.keys[key] == 1
}

// Unbind implements Router.
func (b *bindingTable[D]) Unbind(d D, key string, args amqp.Table) (bound amqp.Table, removed bool) {
	t := b.bound[d]
	if t == nil {
		return nil, false
	}
	x := t.find(hashBinding(key, args), key, args)
	if x == nil {
		return nil, false
	}
	b.remove(t, x)
	return x.Args, true
}

func (b *bindingTable[D]) remove(t *boundTo[D], x *binding[D]) {
	hash := hashBinding(x.Key, x.Args)
	switch first := t.byHash[hash]; {
	case first != x:
		for first.next != x {
			first = first.next
		}
		first.next = x.next
	case x.next == nil:
		delete(t.byHash, hash)
	default:
		t.byHash[hash] = x.next
	}
	t.keys[x.Key]--
	last := t.keys[x.Key] == 0
	if last {
		delete(t.keys, x.Key)
	}
	if len(t.keys) == 0 {
		delete(b.bound, x.Destination)
	}
	b.n--
	b.gone(x, last)
}

// UnbindSome implements Router.
func (b *bindingTable[D]) UnbindSome(d D, most int) (removed []Binding[D]) {
	t := b.bound[d]
	if t == nil {
		return nil
	}
	for _, x := range t.byHash {
		for ; x != nil && len(removed) < most; x = x.next {
			removed = append(removed, x.Binding)
			b.remove(t, x)
		}
		if len(removed) == most {
			break
		}
	}
	return removed
}

// Each implements Router.
func (b *bindingTable[D]) Each(fn func(Binding[D]) bool) {
	for d := range b.bound {
		if !b.EachTo(d, fn) {
			return
		}
	}
}

// EachTo implements Router.
func (b *bindingTable[D]) EachTo(d D, fn func(Binding[D]) bool) (more bool) {
	t := b.bound[d]
	if t == nil {
		return true
	}
	for _, x := range t.byHash {
		for ; x != nil; x = x.next {
			if !fn(x.Binding) {
				return false
			}
		}
	}
	return true
}

// Len implements Router.
func (b *bindingTable[D]) Len() int { return b.n }
