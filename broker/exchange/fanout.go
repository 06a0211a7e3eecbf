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
	return added != nil
}

// unindex forgets a destination if nothing is left of its bindings.
func (r *fanout[D]) unindex(x *binding[D], _ bool) {
	if _, bound := r.bound[x.Destination]; !bound {
		r.dests.remove(x.Destination)
	}
}

func (r *fanout[D]) Route(_ []byte, _ func() amqp.Table, out []D, _ *Pace) []D {
	return append(out, r.dests.list...)
}
