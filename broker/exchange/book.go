package exchange

import (
	"slices"

	"curfew/broker/amqp"
)

// book records every binding by its identity: destination, key, arguments. The indexes of the
// kinds hold a destination once per key however many argument tables it is bound with; the book
// tells them when the first one comes and the last one goes.
type book[D comparable] struct {
	bound map[D]map[string][]amqp.Table // no empty map or slice is kept
	n     int
}

func newBook[D comparable]() book[D] {
	return book[D]{bound: make(map[D]map[string][]amqp.Table)}
}

// add records a binding. first: d had none under this key.
func (b *book[D]) add(d D, key string, args amqp.Table) (added, first bool) {
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

// remove forgets a binding and returns its arguments. last: d has none under this key any more.
func (b *book[D]) remove(d D, key string, args amqp.Table) (bound amqp.Table, removed, last bool) {
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

// removeAll forgets every binding of d, calls gone with each key once, and returns the bindings.
func (b *book[D]) removeAll(d D, gone func(key string)) (removed []Binding[D]) {
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
func (b *book[D]) Each(fn func(Binding[D]) bool) {
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
func (b *book[D]) Len() int { return b.n }

func find(tables []amqp.Table, args amqp.Table) int {
	return slices.IndexFunc(tables, func(t amqp.Table) bool { return ArgsEqual(t, args) })
}

// without removes d from list, keeping the order. d must be there.
func without[D comparable](list []D, d D) []D {
	i := slices.Index(list, d)
	return slices.Delete(list, i, i+1)
}
