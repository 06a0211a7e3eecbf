package exchange

import (
	"slices"

	"curfew/broker/amqp"
)

// argumentTables are the arguments of the bindings that have the same destination and key.
type argumentTables struct {
	few  []amqp.Table            // searched one by one
	many map[uint64][]amqp.Table // by their hash; nil while there are few
}

// tableScan is how many arguments are compared one by one.
const tableScan = 8

// add adds arguments unless there are equal ones.
func (t *argumentTables) add(args amqp.Table) bool {
	list := t.sameHash(args)
	if find(list, args) >= 0 {
		return false
	}
	switch {
	case t.many != nil:
		t.many[hashArgs(args)] = append(list, args)
	case len(t.few) < tableScan:
		t.few = append(t.few, args)
	default:
		all := append(t.few, args)
		t.few, t.many = nil, make(map[uint64][]amqp.Table, 2*len(all))
		for _, one := range all {
			hash := hashArgs(one)
			t.many[hash] = append(t.many[hash], one)
		}
	}
	return true
}

// remove removes arguments, and returns them as they were added.
func (t *argumentTables) remove(args amqp.Table) (bound amqp.Table, removed bool) {
	list := t.sameHash(args)
	i := find(list, args)
	if i < 0 {
		return nil, false
	}
	bound = list[i]
	switch list = slices.Concat(list[:i], list[i+1:]); { // a copy: each may be under way
	case t.many == nil:
		t.few = list
	case len(list) == 0:
		delete(t.many, hashArgs(args))
	default:
		t.many[hashArgs(args)] = list
	}
	return bound, true
}

// sameHash returns the arguments among which these would be.
func (t *argumentTables) sameHash(args amqp.Table) []amqp.Table {
	if t.many != nil {
		return t.many[hashArgs(args)]
	}
	return t.few
}

func find(tables []amqp.Table, args amqp.Table) int {
	return slices.IndexFunc(tables, func(t amqp.Table) bool { return ArgsEqual(t, args) })
}

// each calls fn with all arguments until it returns false, which each then returns too.
func (t *argumentTables) each(fn func(amqp.Table) bool) bool {
	for _, args := range t.few {
		if !fn(args) {
			return false
		}
	}
	for _, list := range t.many {
		for _, args := range list {
			if !fn(args) {
				return false
			}
		}
	}
	return true
}

// bindingTable holds every binding by its identity: destination, key and arguments. The
// index of an exchange type holds a destination once per key, whatever the number of its
// argument tables. So the table reports the first binding and the last one of a destination
// under a key.
type bindingTable[D comparable] struct {
	bound map[D]map[string]argumentTables // without empty maps and tables
	n     int
	gone  func(d D, key string) // the last one
}

func newBindingTable[D comparable]() bindingTable[D] {
	return bindingTable[D]{bound: make(map[D]map[string]argumentTables)}
}

// add adds a binding. first: d had none under this key before.
func (b *bindingTable[D]) add(d D, key string, args amqp.Table) (added, first bool) {
	keys := b.bound[d]
	tables, known := keys[key]
	if !tables.add(args) {
		return false, false
	}
	if keys == nil {
		keys = make(map[string]argumentTables)
		b.bound[d] = keys
	}
	keys[key] = tables
	b.n++
	return true, !known
}

// Unbind implements Router.
func (b *bindingTable[D]) Unbind(d D, key string, args amqp.Table) (bound amqp.Table, removed bool) {
	keys := b.bound[d]
	tables := keys[key]
	bound, removed = tables.remove(args)
	if !removed {
		return nil, false
	}
	b.n--
	if len(tables.few)+len(tables.many) > 0 {
		keys[key] = tables
		return bound, true
	}
	delete(keys, key)
	if len(keys) == 0 {
		delete(b.bound, d)
	}
	b.gone(d, key)
	return bound, true
}

// UnbindSome implements Router.
func (b *bindingTable[D]) UnbindSome(d D, most int) (removed []Binding[D]) {
	for key, tables := range b.bound[d] {
		tables.each(func(args amqp.Table) bool {
			removed = append(removed, Binding[D]{d, key, args})
			return len(removed) < most
		})
		if len(removed) >= most {
			break
		}
	}
	for _, x := range removed {
		b.Unbind(d, x.Key, x.Args)
	}
	return removed
}

// Each implements Router.
func (b *bindingTable[D]) Each(fn func(Binding[D]) bool) {
	for d, keys := range b.bound {
		for key, tables := range keys {
			if !tables.each(func(args amqp.Table) bool { return fn(Binding[D]{Destination: d, Key: key, Args: args}) }) {
				return
			}
		}
	}
}

// Len implements Router.
func (b *bindingTable[D]) Len() int { return b.n }
