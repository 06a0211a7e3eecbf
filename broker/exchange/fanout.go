package exchange

import "curfew/broker/amqp"

// fanout routes to every destination, whatever the key is (AMQP 0-9-1 §3.1.3.2).
type fanout[D comparable] struct {
	bindingTable[D]
	list []D // in the order of the first binding
}

func newFanout[D comparable]() *fanout[D] {
	return &fanout[D]{bindingTable: newBindingTable[D]()}
}

func (r *fanout[D]) Bind(d D, key string, args amqp.Table) bool {
	_, known := r.bound[d]
	added, _ := r.add(d, key, args)
	if !known {
		r.list = append(r.list, d)
	}
	return added
}

func (r *fanout[D]) Unbind(d D, key string, args amqp.Table) (amqp.Table, bool) {
	unbound, removed, _ := r.remove(d, key, args)
	if _, bound := r.bound[d]; removed && !bound {
		r.list = withoutItem(r.list, d)
	}
	return unbound, removed
}

func (r *fanout[D]) UnbindAll(d D) []Binding[D] {
	removed := r.removeAll(d, func(string) {})
	if len(removed) > 0 {
		r.list = withoutItem(r.list, d)
	}
	return removed
}

func (r *fanout[D]) Route(_ []byte, _ func() amqp.Table, out []D) []D {
	return append(out, r.list...)
}
