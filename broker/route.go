package broker

import (
	"bytes"

	"curfew/broker/amqp"
	"curfew/broker/exchange"
)

// routing is the work of finding one message's queues.
type routing struct {
	vh      *VHost
	key     []byte
	headers func() amqp.Table
	out     []*Queue
	through []*Exchange // exchanges passed already
	found   []destination
	byTable bool // a headers exchange was asked: the key alone does not decide
}

// route appends the queues that exchange name sends the message to, each once.
// Error: 404 for an exchange that does not exist, 403 for an internal one
// unless dead-lettering. Called with vh.mu held for reading.
func (r *routing) route(name string) error {
	if name == "" {
		if q, ok := r.vh.queues[string(r.key)]; ok {
			r.addQueue(q)
		}
		return nil
	}
	x, ok := r.vh.exchanges[name]
	if !ok {
		return r.vh.noExchange(name)
	}
	r.pass(x)
	return nil
}

// pass sends the message through x, the exchanges bound to it, and, where that
// reaches nothing, its alternate exchange.
func (r *routing) pass(x *Exchange) {
	for _, been := range r.through {
		if been == x {
			return
		}
	}
	r.through = append(r.through, x)
	r.byTable = r.byTable || x.kind == exchange.Headers
	from := len(r.found)
	r.found = x.router.Route(r.key, r.headers, r.found)
	to := len(r.found)
	for _, d := range r.found[from:to] {
		if d.queue != nil {
			r.addQueue(d.queue)
		} else {
			r.pass(d.exchange)
		}
	}
	if from == to && x.alternate != "" {
		r.route(x.alternate) // one that is missing routes nowhere
	}
}

func (r *routing) addQueue(q *Queue) {
	for _, have := range r.out {
		if have == q {
			return
		}
	}
	r.out = append(r.out, q)
}

// routes finds queues and remembers them per exchange and key until the
// topology changes. For one goroutine.
type routes struct {
	vh       *VHost
	topology uint64
	known    map[string][]*Queue // length of the exchange's name, name, key
	lastName []byte
	last     []*Queue
	name     []byte // scratch
	work     routing
}

// routesKept bounds the memory of a publisher with ever new keys.
const routesKept = 1024

// find returns the queues of a message; the slice is valid until the next call.
// properties are the message's, for CC, BCC and headers exchanges.
func (rs *routes) find(vh *VHost, name, key []byte, internal bool, headers []byte) ([]*Queue, error) {
	plain := !carriesKeys(headers)
	rs.name = append(append(append(rs.name[:0], byte(len(name))), name...), key...)
	if topology := vh.topology.Load(); rs.vh != vh || rs.topology != topology || len(rs.known) >= routesKept {
		rs.vh, rs.topology, rs.last, rs.lastName = vh, topology, nil, rs.lastName[:0]
		clear(rs.known)
	} else if plain {
		if bytes.Equal(rs.name, rs.lastName) {
			return rs.last, nil
		}
		if known, ok := rs.known[string(rs.name)]; ok {
			rs.remember(known)
			return known, nil
		}
	}
	queues, byTable, err := rs.search(string(name), key, internal, headers, plain)
	if err == nil && plain && !byTable {
		if rs.known == nil {
			rs.known = map[string][]*Queue{}
		}
		kept := append([]*Queue(nil), queues...)
		rs.known[string(rs.name)] = kept
		rs.remember(kept)
	}
	return queues, err
}

func (rs *routes) remember(queues []*Queue) {
	rs.last, rs.lastName = queues, append(rs.lastName[:0], rs.name...)
}

func (rs *routes) search(name string, key []byte, internal bool, rawHeaders []byte, plain bool) ([]*Queue, bool, error) {
	rs.vh.mu.RLock()
	defer rs.vh.mu.RUnlock()
	if x, ok := rs.vh.exchanges[name]; ok && x.declared.Internal && !internal {
		return nil, false, amqp.NewException(amqp.AccessRefused, 60, 40, "cannot publish to internal %s", rs.vh.exchangeLabel(name))
	}
	table := lazyTable(rawHeaders)
	r := &rs.work
	*r = routing{vh: rs.vh, key: key, headers: table, out: r.out[:0], through: r.through[:0], found: r.found[:0]}
	if err := r.route(name); err != nil {
		return nil, false, err
	}
	if !plain {
		for _, header := range []string{"CC", "BCC"} {
			for _, more := range keyList(table()[header]) {
				r.key, r.through = []byte(more), r.through[:0]
				r.route(name)
			}
		}
	}
	return r.out, r.byTable, nil
}
