package exchange

import "curfew/broker/amqp"

// Kind is the type of an exchange, as in exchange.declare.
type Kind string

// The kinds of AMQP 0-9-1 §3.1.3.
const (
	Direct  Kind = "direct"
	Fanout  Kind = "fanout"
	Topic   Kind = "topic"
	Headers Kind = "headers"
)

// ParseKind reports whether New can build an exchange of the type name.
func ParseKind(name string) (Kind, bool) {
	switch k := Kind(name); k {
	case Direct, Fanout, Topic, Headers:
		return k, true
	}
	return "", false
}

// Binding is one binding, as given to Bind.
type Binding[D comparable] struct {
	Destination D
	Key         string
	Args        amqp.Table
}

// Router holds the bindings of one exchange to destinations of type D.
//
// Changes need exclusive access; Route, Each and Len may run concurrently with one another.
type Router[D comparable] interface {
	// Bind adds a binding and keeps args, which must not be changed afterwards. It returns false,
	// and changes nothing, if the same destination is bound with the same key and equal arguments.
	Bind(d D, key string, args amqp.Table) (added bool)

	// Unbind removes the binding that was added with equal arguments, and returns the
	// original arguments. removed is false if there is no such binding.
	Unbind(d D, key string, args amqp.Table) (bound amqp.Table, removed bool)

	// UnbindSome removes up to most bindings of d and returns them, in no particular order. None: d
	// has none left.
	UnbindSome(d D, most int) []Binding[D]

	// Route appends to out each destination of a message with this routing key and these
	// headers, once, and returns out. Destinations already in out are not considered.
	// headers is called at most once, and only if a binding depends on it. It may return
	// nil.
	//
	// Steps are counted in p, which may be nil. If p pauses, bindings may be changed meanwhile: one that
	// is there all the time is found, and one that comes or goes may be. A destination that is unbound
	// and bound again meanwhile may be appended twice.
	Route(key []byte, headers func() amqp.Table, out []D, p *Pace) []D

	// Each calls fn with every binding, in no particular order, until fn returns false. fn may let
	// others change bindings: one that is there all the time is still found once.
	Each(fn func(Binding[D]) bool)

	// EachTo is Each for the bindings to d.
	EachTo(d D, fn func(Binding[D]) bool) (more bool)

	// Len returns the number of bindings.
	Len() int
}

// New returns an empty router. It panics if k is not one of the constants of this package.
func New[D comparable](k Kind) Router[D] {
	switch k {
	case Direct:
		r := &direct[D]{keys: make(map[string]set[D])}
		r.gone = r.unindex
		return r
	case Fanout:
		r := &fanout[D]{}
		r.gone = r.unindex
		return r
	case Topic:
		r := &topic[D]{root: node[D]{mark: noMark}, dests: make(map[D]*target[D])}
		r.gone = r.unindex
		return r
	case Headers:
		r := &headers[D]{dests: make(map[D]*headersTarget[D]), under: make(map[uint64]set[*rule[D]])}
		r.gone = r.unindex
		return r
	}
	panic("exchange: unknown kind " + string(k))
}
