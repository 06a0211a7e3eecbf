package exchange

import "curfew/broker/amqp"

// direct routes by equality of routing key and binding key (AMQP 0-9-1 §3.1.3.1).
type direct[D comparable] struct {
	bindingTable[D]
	keys map[string][]D // in the order of binding, without empty slices
}

func newDirect[D comparable]() *direct[D] {
	return &direct[D]{bindingTable: newBindingTable[D](), keys: make(map[string][]D)}
}

func (r *direct[D]) Bind(d D, key string, args amqp.Table) bool {
	added, first := r.add(d, key, args)
	if first {
		r.keys[key] = append(r.keys[key], d)
	}
	return added
}

func (r *direct[D]) Unbind(d D, key string, args amqp.Table) (amqp.Table, bool) {
	bound, removed, last := r.remove(d, key, args)
	if last {
		r.unindex(d, key)
	}
	return bound, removed
}

func (r *direct[D]) UnbindAll(d D) []Binding[D] {
	return r.removeAll(d, func(key string) { r.unindex(d, key) })
}

func (r *direct[D]) Route(key []byte, _ func() amqp.Table, out []D) []D {
	return append(out, r.keys[string(key)]...)
}

func (r *direct[D]) unindex(d D, key string) {
	if left := withoutItem(r.keys[key], d); len(left) > 0 {
		r.keys[key] = left
	} else {
		delete(r.keys, key)
	}
}
