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

// unindex forgets d if nothing is left of its bindings.
func (r *fanout[D]) unindex(d D, _ string) {
	if _, bound := r.bound[d]; !bound {
		r.dests.remove(d)
	}
}

func (r *fanout[D]) Route(_ []byte, _ func() amqp.Table, out []D, _ *Pace) []D {
	return append(out, r.dests.list...)
}
