package exchange

import "curfew/broker/amqp"

// direct routes by equality of routing key and binding key (AMQP 0-9-1 §3.1.3.1).
type direct[D comparable] struct {
	bindingTable[D]
	keys map[string]set[D] // without empty sets
}

func (r *direct[D]) Bind(d D, key string, args amqp.Table) bool {
	added, first := r.add(d, key, args)
	if first {
		s := r.keys[key]
		s.add(d)
		r.keys[key] = s
	}
	return added != nil
}

func (r *direct[D]) Route(key []byte, _ func() amqp.Table, out []D, _ *Pace) []D {
	return append(out, r.keys[string(key)].list...)
}

func (r *direct[D]) unindex(x *binding[D], last bool) {
	if !last {
		return
	}
	s := r.keys[x.Key]
	if s.remove(x.Destination); len(s.list) == 0 {
		delete(r.keys, x.Key)
	} else {
		r.keys[x.Key] = s
	}
}
