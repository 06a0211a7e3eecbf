package topology

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/internal/catalog"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// Load puts saved definitions of this virtual host into force: those of the last run, before anybody else uses the virtual host; or
// those of an import, which were tried in a copy, so that none can be refused, and since when nothing has been declared (BeginImport).
//
// A queue or exchange that an older version accepted is always restored; arguments that this version would refuse are ignored. A policy
// that it refuses is kept, and applies to nothing. A binding is left out if one of its ends does not exist: that was deleted during the import, or
// shortly before the last run ended, so that not all of its bindings had been removed.
func (vh *VHost) Load(d *catalog.Definitions) error {
	vh.Policies.governing.Lock()
	defer vh.Policies.governing.Unlock()
	var list [2][]policy.Policy
	for i := range d.Policies {
		k := d.Policies[i].PolicyKind()
		list[k] = append(list[k], vh.Policies.loaded(k, d.Policies[i].Policy))
	}
	was := vh.Policies.sets()
	set := [2]policy.Set{was[policy.User].With(list[policy.User]...), was[policy.Operator].With(list[policy.Operator]...)}
	if len(d.Policies) > 0 {
		_ = vh.Policies.replace(set, nil)
	}
	for i := range d.Exchanges {
		if err := vh.loadExchange(&d.Exchanges[i], set); err != nil {
			return fmt.Errorf("exchange %q: %w", d.Exchanges[i].Name, err)
		}
	}
	for i := range d.Queues {
		if err := vh.Queues.load(&d.Queues[i], set); err != nil {
			return fmt.Errorf("queue %q: %w", d.Queues[i].Name, err)
		}
	}
	if err := vh.loadBindings(d.Bindings); err != nil {
		return err
	}
	if len(d.Policies) > 0 {
		if changed := vh.Policies.govern(was); !vh.registry.restoring() { // the messages are not there yet
			vh.registry.Trim(changed)
		}
	}
	return nil
}

// loaded returns a saved policy, ready for use if it is valid.
func (t *Policies) loaded(k policy.Kind, saved policy.Policy) policy.Policy {
	p, err := t.checkPolicy(k, saved)
	if err != nil {
		p = saved
		p.NotInForce = strings.TrimSpace(strings.TrimPrefix(err.Error(), "Validation failed"))
		t.vh.registry.log.Warn("a saved policy is not in force; correct what the reason names and set it again, or clear it",
			zap.String("vhost", t.vh.guard.name), zap.Stringer("kind", k), zap.String("policy", p.Name),
			zap.String("pattern", p.Pattern), zap.String("reason", p.NotInForce))
	}
	return p
}

// loadExchange restores an exchange. One that every virtual host has stays as it is.
func (vh *VHost) loadExchange(x *catalog.Exchange, set [2]policy.Set) error {
	args, err := x.Args.Table()
	d := ExchangeDeclare{Kind: x.Type, Durable: !x.Transient, AutoDelete: x.AutoDelete, Internal: x.Internal, Args: args}
	kind, wrong := ReadExchange(x.Name, d)
	if err == nil {
		err = wrong
	}
	if err == nil && predeclared[x.Name] != "" { // of those an import has none, so nobody else is there
		if err = vh.Exchanges.exchanges[x.Name].equivalent(d); err == nil {
			return nil
		}
	}
	if err != nil && predeclared[x.Name] != "" {
		vh.registry.log.Warn("a saved change of an exchange that every virtual host has is left out",
			zap.String("vhost", vh.guard.name), zap.String("exchange", x.Name), zap.Error(err))
		vh.registry.env.Store.Define(store.Definition{Key: x.Key()})
		return nil
	}
	if err != nil {
		return err
	}
	if err := policy.CheckExchange(vh.registry.defaults, exchangeLabel(vh.guard.name, x.Name), args); err != nil {
		vh.registry.log.Warn("a saved exchange would be refused now; it is restored without its invalid arguments; delete it and declare it again",
			zap.String("vhost", vh.guard.name), zap.String("exchange", x.Name), zap.Error(err))
	}
	made := vh.Exchanges.newExchange(x.Name, kind, d)
	g := find(set, governed{exchange: made})
	vh.guard.lock()
	defer vh.guard.unlock()
	_ = vh.memory.takeLocked(made.footprint(), "", true)
	vh.Exchanges.placeExchangeLocked(made, vh.Policies.appliedLocked(&g))
	return nil
}

// load restores a queue without its messages.
func (t *Queues) load(x *catalog.Queue, policies [2]policy.Set) error {
	args, err := x.Args.Table()
	if err != nil {
		return err
	}
	d := QueueDeclare{Durable: !x.Transient, Exclusive: x.Exclusive, AutoDelete: x.AutoDelete, Args: args}
	set, refused := t.settingsOf(x.Name, d)
	if refused != nil {
		t.vh.registry.log.Warn("a saved queue would be refused now; it is restored without its invalid arguments; delete it and declare it again",
			zap.String("vhost", x.VHost), zap.String("queue", x.Name), zap.Error(refused))
	}
	set.TakePriorities(args)
	q := t.newQueue(x.ID, otherConnection{}, x.Name, d, set)
	g := find(policies, governed{queue: q})
	t.vh.guard.lock()
	defer t.vh.guard.unlock()
	if existing := t.queues[x.Name]; existing != nil { // UndeliverableQueue: a dead letter was faster
		t.vh.guard.noteLocked(x.Key(), existing.definition())
		return nil
	}
	if x.Exclusive && !t.vh.registry.restoring() { // it is the sub-queue that a policy gives to an existing queue, and belongs to the same connection
		of := t.queues[strings.TrimSuffix(x.Name, policy.SubqueueSuffix)]
		if of == nil || of.owner == nil { // the connection has closed since
			return nil
		}
		q.owner = of.owner
	}
	if x.Consumed {
		q.marks.Or(consumed)
	}
	if q.Recovered = x.Recovered; x.Recovered {
		t.vh.registry.Adopted.Add(1)
	}
	_ = t.vh.memory.takeLocked(q.footprint(), "", true)
	t.placeQueueLocked(q, t.vh.Policies.appliedLocked(&g))
	q.Messages.Idle.Renew()
	return nil
}

// otherConnection owns the exclusive queues in the copy of a broker.
type otherConnection struct{}

// loadBindings restores bindings.
func (vh *VHost) loadBindings(list []catalog.Binding) error {
	var why error
	left := 0
	for i := range list {
		x := &list[i]
		args, err := x.Args.Table()
		if err != nil {
			return fmt.Errorf("binding of %q to %q: %w", x.Destination, x.Source, err)
		}
		if err := vh.loadBinding(x, args); err != nil {
			why = err
			left++
		}
	}
	if left > 0 {
		vh.registry.log.Warn("saved bindings are left out: their source or destination does not exist", zap.Int("bindings", left), zap.Error(why))
	}
	return nil
}

// loadBinding restores a binding, or removes its definition if one of its ends does not exist: that is the error.
func (vh *VHost) loadBinding(x *catalog.Binding, args amqp.Table) error {
	vh.guard.lock()
	defer vh.guard.unlock()
	b := Binding{Source: x.Source, Destination: x.Destination, ToExchange: x.ToExchange, RoutingKey: x.RoutingKey, Args: args}
	from, to, err := vh.bothEndsLocked(otherConnection{}, b)
	if err != nil {
		if vh.guard.noteLocked(x.Key(), nil); vh.registry.restoring() { // when nothing else is saved
			vh.registry.env.Store.Define(store.Definition{Key: x.Key()})
		}
		return err
	}
	if from.router.Bind(to, x.RoutingKey, args) {
		_ = vh.memory.takeLocked(bindingFootprint(x.RoutingKey, args), "", true)
		vh.changedLocked()
		from.boundLocked(exchange.Binding[destination]{Destination: to, Key: x.RoutingKey, Args: args})
	}
	return nil
}
