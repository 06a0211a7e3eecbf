package exchange

import "curfew/broker/amqp"

// fanout routes to every destination, whatever the key is (AMQP 0-9-1 §3.1.3.2).
type fanout[D comparable] struct {
	bindingTable[D]
	dests set[D]
}

func (r *fanout[D]) Bind(d D, key string, args amqp.Table) bool {
	_, known := r.bound[d]
	added, _ := r.add(d, key, args)
	if !known {
		r.dests.add(d)
	}
	return added
}

func (r *fanout[D]) Unbind(d D, key string, args amqp.Table) (amqp.Table, bool) {
	unbound, removed, _ := r.remove(d, key, args)
	if removed {
		r.unindex(d)
	}
	return unbound, removed
}

func (r *fanout[D]) UnbindSome(d D, most int) []Binding[D] {
	return r.removeSome(d, most, func(string) { r.unindex(d) })
}

// unindex forgets d if nothing is left of its bindings.
func (r *fanout[D]) unindex(d D) {
	if _, bound := r.bound[d]; !bound {
		r.dests.remove(d)
	}
}

func (r *fanout[D]) Route(_ []byte, _ func() amqp.Table, out []D, _ *Pace) []D {
	return append(out, r.dests.list...)
}
