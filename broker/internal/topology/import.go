package topology

import (
	"strings"

	"curfew/broker/exchange"
	"curfew/broker/internal/catalog"
	"curfew/broker/policy"
)

// ApplyImport puts definitions of this virtual host into force that are already saved. None of them
// can be refused: they were tried in a copy, and nothing has been declared since (BeginImport). A
// queue or exchange may have been deleted since then; a binding to or from it is dropped.
func (vh *VHost) ApplyImport(d *catalog.Definitions) {
	vh.Policies.governing.Lock()
	defer vh.Policies.governing.Unlock()
	var list [2][]policy.Policy
	for i := range d.Policies {
		x := &d.Policies[i]
		list[x.PolicyKind()] = append(list[x.PolicyKind()], x.Policy)
	}
	was := vh.Policies.sets()
	set := [2]policy.Set{was[policy.User].With(list[policy.User]...), was[policy.Operator].With(list[policy.Operator]...)}
	if len(d.Policies) > 0 {
		_ = vh.Policies.replace(set, nil)
	}
	for i := range d.Exchanges {
		vh.importExchange(&d.Exchanges[i], set)
	}
	for i := range d.Queues {
		vh.Queues.importQueue(&d.Queues[i], set)
	}
	for i := range d.Bindings {
		vh.importBinding(&d.Bindings[i])
	}
	if len(d.Policies) > 0 {
		vh.registry.Trim(vh.Policies.govern(was))
	}
}

func (vh *VHost) importExchange(x *catalog.Exchange, set [2]policy.Set) {
	args, _ := x.Args.Table() // they were made from a table
	d := exchangeDeclared(x, args)
	kind, _ := ReadExchange(x.Name, d)
	made := vh.Exchanges.newExchange(x.Name, kind, d)
	g := find(set, governed{exchange: made})
	vh.guard.lock()
	defer vh.guard.unlock()
	_ = vh.memory.takeLocked(made.footprint(), "", true)
	vh.Exchanges.placeExchangeLocked(made, vh.Policies.appliedLocked(&g))
}

func (t *Queues) importQueue(x *catalog.Queue, policies [2]policy.Set) {
	args, _ := x.Args.Table()
	d := queueDeclared(x, args)
	set, _ := t.settingsOf(x.Name, d)
	q := t.newQueue(x.ID, nil, x.Name, d, set)
	g := find(policies, governed{queue: q})
	t.vh.guard.lock()
	defer t.vh.guard.unlock()
	if existing := t.queues[x.Name]; existing != nil { // UndeliverableQueue: a dead letter was faster
		t.vh.guard.noteLocked(x.Key(), existing.definition())
		return
	}
	if x.Exclusive { // it is the sub-queue that a policy gives to an existing queue, and belongs to the same connection
		of := t.queues[strings.TrimSuffix(x.Name, policy.SubqueueSuffix)]
		if of == nil || of.owner == nil { // the connection has closed since
			return
		}
		q.owner = of.owner
	}
	_ = t.vh.memory.takeLocked(q.footprint(), "", true)
	t.placeQueueLocked(q, t.vh.Policies.appliedLocked(&g))
	q.Messages.Idle.Renew()
}

func (vh *VHost) importBinding(x *catalog.Binding) {
	args, _ := x.Args.Table()
	vh.guard.lock()
	defer vh.guard.unlock()
	from, to, err := vh.bothEndsLocked(nil, bindingOf(x, args))
	if err != nil {
		vh.guard.noteLocked(x.Key(), nil)
		return
	}
	if from.router.Bind(to, x.RoutingKey, args) {
		_ = vh.memory.takeLocked(bindingFootprint(x.RoutingKey, args), "", true)
		vh.changedLocked()
		from.boundLocked(exchange.Binding[destination]{Destination: to, Key: x.RoutingKey, Args: args})
	}
}
