package exchange

import (
	"slices"

	"curfew/broker/amqp"
)

// bindingTable holds every binding by its identity: destination, key and arguments. The
// index of an exchange type holds a destination once per key, whatever the number of its
// argument tables. So the table reports the first binding and the last one of a destination
// under a key.
type bindingTable[D comparable] struct {
	bound map[D]map[string][]amqp.Table // without empty maps and slices
	n     int
}

func newBindingTable[D comparable]() bindingTable[D] {
	return bindingTable[D]{bound: make(map[D]map[string][]amqp.Table)}
}

// add adds a binding. first: d had none under this key before.
func (b *bindingTable[D]) add(d D, key string, args amqp.Table) (added, first bool) {
	keys := b.bound[d]
	tables := keys[key]
	if find(tables, args) >= 0 {
		return false, false
	}
	if keys == nil {
		keys = make(map[string][]amqp.Table)
		b.bound[d] = keys
	}
	keys[key] = append(tables, args)
	b.n++
	return true, len(tables) == 0
}

// remove removes a binding and returns its arguments. last: d has none left under this key.
func (b *bindingTable[D]) remove(d D, key string, args amqp.Table) (bound amqp.Table, removed, last bool) {
	keys := b.bound[d]
	tables := keys[key]
	i := find(tables, args)
	if i < 0 {
		return nil, false, false
	}
	b.n--
	bound = tables[i]
	if len(tables) > 1 {
		keys[key] = slices.Delete(tables, i, i+1)
		return bound, true, false
	}
	delete(keys, key)
	if len(keys) == 0 {
		delete(b.bound, d)
	}
	return bound, true, true
}

// removeAll removes every binding of d and returns them. It calls gone once for each key.
func (b *bindingTable[D]) removeAll(d D, gone func(key string)) (removed []Binding[D]) {
	for key, tables := range b.bound[d] {
		for _, args := range tables {
			removed = append(removed, Binding[D]{d, key, args})
		}
		gone(key)
	}
	delete(b.bound, d)
	b.n -= len(removed)
	return removed
}

// Each implements Router.
func (b *bindingTable[D]) Each(fn func(Binding[D]) bool) {
	for d, keys := range b.bound {
		for key, tables := range keys {
			for _, args := range tables {
				if !fn(Binding[D]{Destination: d, Key: key, Args: args}) {
					return
				}
			}
		}
	}
}

// Len implements Router.
func (b *bindingTable[D]) Len() int { return b.n }

func find(tables []amqp.Table, args amqp.Table) int {
	return slices.IndexFunc(tables, func(t amqp.Table) bool { return ArgsEqual(t, args) })
}

// withoutItem removes d, which must be present, from list and keeps the order.
func withoutItem[D comparable](list []D, d D) []D {
	i := slices.Index(list, d)
	return slices.Delete(list, i, i+1)
}
