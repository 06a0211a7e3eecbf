package topology

import (
	"cmp"
	"maps"
	"slices"

	"curfew/broker/exchange"
	"curfew/broker/internal/delivery"
)

// QueueInfo describes a queue at one instant.
type QueueInfo struct {
	QueueDeclare
	ID          uint64
	VHost, Name string
	Owner       Owner // of an exclusive queue
	Recovered   bool  // made for messages whose queue's definition was not found

	delivery.QueueState
}

// Info describes the queue.
func (q *Queue) Info() QueueInfo {
	return QueueInfo{QueueDeclare: q.Declared(), ID: q.ID, VHost: q.vh.guard.name, Name: q.Name, Owner: q.owner, Recovered: q.Recovered, QueueState: q.Messages.State()}
}

// Declared is how the queue was declared, with the changes since. It is not to be changed.
func (q *Queue) Declared() QueueDeclare { return q.declared.Load().QueueDeclare }

// List lists the queues by name.
func (t *Queues) List() []*Queue {
	all := t.all()
	slices.SortFunc(all, byName)
	return all
}

func byName(x, y *Queue) int { return cmp.Compare(x.Name, y.Name) }

// all lists the queues, in no order. What is declared or deleted meanwhile may be listed or not.
func (t *Queues) all() (list []*Queue) {
	t.vh.guard.mu.RLock()
	defer t.vh.guard.mu.RUnlock()
	list = make([]*Queue, 0, len(t.queues))
	p := exchange.Pace{Pause: t.vh.guard.pause}
	for _, q := range t.queues { // a map may change between two steps of a range
		p.Step(1)
		if !q.gone {
			list = append(list, q)
		}
	}
	return list
}

// ExchangeInfo describes an exchange.
type ExchangeInfo struct {
	ExchangeDeclare
	VHost, Name  string
	Bindings     int    // from it
	PublishedIn  uint64 // messages published to it
	PublishedOut uint64 // sum of the queues they went to
	Unrouted     uint64 // of those published to it, that reached no queue
}

// List lists the exchanges by name, the default one "" first.
func (t *Exchanges) List() []ExchangeInfo {
	t.vh.guard.mu.RLock()
	all := make([]ExchangeInfo, 0, len(t.exchanges)+1)
	all = append(all, t.defaultExchange.infoLocked())
	p := exchange.Pace{Pause: t.vh.guard.pause}
	for _, x := range t.exchanges {
		p.Step(1)
		all = append(all, x.infoLocked())
	}
	t.vh.guard.mu.RUnlock()
	slices.SortFunc(all, func(x, y ExchangeInfo) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// Get returns the exchange of that name, or a 404 exception.
func (t *Exchanges) Get(name string) (ExchangeInfo, error) {
	t.vh.guard.mu.RLock()
	defer t.vh.guard.mu.RUnlock()
	if name == "" {
		return t.defaultExchange.infoLocked(), nil
	}
	x, ok := t.exchanges[name]
	if !ok {
		return ExchangeInfo{}, noExchange(t.vh.guard.name, name)
	}
	return x.infoLocked(), nil
}

func (x *Exchange) infoLocked() ExchangeInfo {
	return ExchangeInfo{
		ExchangeDeclare: x.declared, VHost: x.vh.guard.name, Name: x.name, Bindings: x.router.Len(),
		PublishedIn: x.stats.In.Load(), PublishedOut: x.stats.Out.Load(), Unrouted: x.stats.None.Load(),
	}
}

// Bindings lists the declared bindings, and each queue's implicit binding to the
// default exchange (AMQP 0-9-1 §3.1.3.1), by source, destination and key.
func (vh *VHost) Bindings() []Binding {
	return vh.BindingsWhere(func(*Binding) bool { return true })
}

// BindingsWhere is Bindings for those that keep returns true for. It is called with a lock held.
func (vh *VHost) BindingsWhere(keep func(*Binding) bool) (all []Binding) {
	add := func(b Binding) {
		if keep(&b) {
			all = append(all, b)
		}
	}
	p := exchange.Pace{Pause: vh.guard.pause}
	vh.guard.mu.RLock()
	for name := range vh.Queues.queues {
		p.Step(1)
		add(Binding{Destination: name, RoutingKey: name})
	}
	vh.eachBindingLocked(func(x *Exchange, b exchange.Binding[destination]) { add(x.boundAs(b)) })
	vh.guard.mu.RUnlock()
	slices.SortFunc(all, func(x, y Binding) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Destination, y.Destination), cmp.Compare(x.RoutingKey, y.RoutingKey))
	})
	return all
}

// BindingsBetween lists those that have the two ends of one, by key.
func (vh *VHost) BindingsBetween(ends Binding) (all []Binding) {
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	if ends.Source == "" && !ends.ToExchange && vh.Queues.queues[ends.Destination] != nil {
		return []Binding{{Destination: ends.Destination, RoutingKey: ends.Destination}}
	}
	x, d, _ := vh.endsLocked(ends) // an error: the default exchange has no others
	if x == nil || d == (destination{}) {
		return nil
	}
	p := exchange.Pace{Pause: vh.guard.pause}
	x.router.EachTo(d, func(b exchange.Binding[destination]) bool {
		p.Step(1)
		all = append(all, x.boundAs(b))
		return true
	})
	slices.SortFunc(all, func(x, y Binding) int { return cmp.Compare(x.RoutingKey, y.RoutingKey) })
	return all
}

func (x *Exchange) boundAs(b exchange.Binding[destination]) Binding {
	return Binding{Source: x.name, Destination: b.Destination.name(), ToExchange: b.Destination.exchange != nil, RoutingKey: b.Key, Args: b.Args}
}

// eachBindingLocked calls fn with each binding, in no order. It pauses: what changes meanwhile may be listed or not.
// Called with mu held for reading.
func (vh *VHost) eachBindingLocked(fn func(*Exchange, exchange.Binding[destination])) {
	p := exchange.Pace{Pause: vh.guard.pause}
	for _, x := range slices.Collect(maps.Values(vh.Exchanges.exchanges)) {
		x.router.Each(func(b exchange.Binding[destination]) bool {
			p.Step(4)
			if !x.gone && !b.Destination.goneLocked() {
				fn(x, b)
			}
			return !x.gone
		})
	}
}

// KindOf is the type of an exchange, "" for one that does not exist.
func (t *Exchanges) KindOf(name []byte) exchange.Kind {
	t.vh.guard.mu.RLock()
	defer t.vh.guard.mu.RUnlock()
	if x, ok := t.exchanges[string(name)]; ok {
		return x.kind
	}
	return ""
}

// Destinations are the queues that a message without headers would reach through an exchange,
// internal ones included, with a key; none if the exchange does not exist. The call does not
// count as use of the exchange (x-auto-delete-on-idle).
func (vh *VHost) Destinations(exchange, key string) (names []string) {
	var r Routes
	found, err := r.Find(vh, []byte(exchange), []byte(key), ByNobody, Headers{}, false)
	if err != nil {
		return nil
	}
	for _, t := range found {
		names = append(names, t.Queue.Name)
	}
	return names
}
