package topology

import (
	"curfew/broker/exchange"
	"curfew/broker/internal/catalog"
	"curfew/broker/policy"
)

// definition is that of the binding in a virtual host.
func (b *Binding) definition(vhost string, transient bool) *catalog.Binding {
	return &catalog.Binding{
		VHost: vhost, Source: b.Source, Destination: b.Destination, ToExchange: b.ToExchange, RoutingKey: b.RoutingKey, Args: catalog.SaveArgs(b.Args), Transient: transient,
	}
}

func (vh *VHost) definitionLocked() *catalog.VHost {
	return &catalog.VHost{Name: vh.guard.name, Metadata: vh.about, Limits: vh.limits}
}

func (x *Exchange) definition() *catalog.Exchange {
	return &catalog.Exchange{
		VHost: x.vh.guard.name, Name: x.name, Type: x.declared.Kind, AutoDelete: x.declared.AutoDelete,
		Internal: x.declared.Internal, Args: catalog.SaveArgs(x.declared.Args), Transient: !x.declared.Durable,
	}
}

// List adds what is declared in the virtual host, durable or not, and its policies to d.
func (vh *VHost) List(d *catalog.Definitions) {
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	d.VHosts = append(d.VHosts, *vh.definitionLocked())
	p := exchange.Pace{Pause: vh.guard.pause}
	for _, x := range vh.Exchanges.exchanges { // a map may change between two steps of a range
		p.Step(4)
		if _, every := predeclared[x.name]; !every {
			d.Exchanges = append(d.Exchanges, *x.definition())
		}
	}
	vh.eachBindingLocked(func(x *Exchange, b exchange.Binding[destination]) {
		d.Bindings = append(d.Bindings, *x.bindingDefinition(b))
	})
	for _, q := range vh.Queues.queues {
		p.Step(4)
		d.Queues = append(d.Queues, *q.definition())
	}
	for k := range vh.Policies.policies {
		for _, p := range vh.Policies.policies[k] {
			x := vh.Policies.policyDefinition(policy.Kind(k), *p)
			d.Policies = append(d.Policies, *x)
		}
	}
}

// Definition is that of the virtual host itself.
func (vh *VHost) Definition() *catalog.VHost {
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	return vh.definitionLocked()
}

func (q *Queue) definition() *catalog.Queue {
	d := q.Declared()
	return &catalog.Queue{
		VHost: q.vh.guard.name, Name: q.Name, ID: q.ID, AutoDelete: d.AutoDelete,
		Recovered: q.Recovered, Consumed: q.Consumed(), Args: catalog.SaveArgs(d.Args),
		Transient: !q.Durable, Exclusive: d.Exclusive,
	}
}

func (x *Exchange) bindingDefinition(b exchange.Binding[destination]) *catalog.Binding {
	as := x.boundAs(b)
	return as.definition(x.vh.guard.name, !x.declared.Durable || !b.Destination.durable())
}

func (t *Policies) policyDefinition(k policy.Kind, p policy.Policy) *catalog.Policy {
	p.NotInForce = "" // found out at each start, and in each copy
	return &catalog.Policy{VHost: t.vh.guard.name, Operator: k == policy.Operator, Policy: p}
}

// eachKeyLocked calls fn with the key of each definition in a virtual host that has ended, or that was about to be saved; q is the queue if it
// is one. fn may let others change what is declared: nothing is added any more. Called with mu held for reading.
func (e *Ended) eachKeyLocked(fn func(key string, q *Queue)) {
	for _, key := range e.claims {
		fn(key, nil)
	}
	for _, x := range e.exchanges {
		if !x.declared.Durable {
			continue
		}
		fn(x.definition().Key(), nil)
		x.router.Each(func(b exchange.Binding[destination]) bool {
			if b.Destination.durable() {
				fn(x.bindingDefinition(b).Key(), nil)
			}
			return true
		})
	}
	for k, set := range e.vh.Policies.policies {
		for _, p := range set {
			fn(e.vh.Policies.policyDefinition(policy.Kind(k), *p).Key(), nil)
		}
	}
	for _, q := range e.Queues {
		if q.Durable {
			fn(q.definition().Key(), q)
		}
	}
}

func (d destination) durable() bool {
	if d.queue != nil {
		return d.queue.Durable
	}
	return d.exchange.declared.Durable
}

func (d destination) name() string {
	if d.queue != nil {
		return d.queue.Name
	}
	return d.exchange.name
}

// Define saves the definition of something in the virtual host that is not declared: of what add, called with the lock held,
// has made; nil: nothing. It returns when that, or what add found, is on disk. It is not undone if it cannot be saved: then
// there is an error, and the store tries again.
func (vh *VHost) Define(add func() *catalog.Queue) error {
	err := vh.guard.locked(func() error {
		if d := add(); d != nil {
			vh.guard.noteLocked(d.Key(), d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return vh.guard.catalog.Sync()
}
