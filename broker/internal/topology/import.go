package topology

import (
	"strings"

	"curfew/broker/exchange"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/queueargs"
	"curfew/broker/policy"
)

// TakeOver has definitions of this virtual host hold, which are saved. Nothing in them can be refused: they were
// made in a copy, and nobody has made anything since (BeginImport). What was there may have gone, and a
// binding goes with it.
func (vh *VHost) TakeOver(news *catalog.Saved) {
	set := vh.policies // nobody else changes them
	for i := range news.Policies {
		x := &news.Policies[i]
		set[x.PolicyKind()] = set[x.PolicyKind()].With(x.Policy)
	}
	for i := range news.Exchanges {
		vh.takeExchange(&news.Exchanges[i], set)
	}
	for i := range news.Queues {
		vh.takeQueue(&news.Queues[i], set)
	}
	for i := range news.Bindings {
		vh.takeBinding(&news.Bindings[i])
	}
	if len(news.Policies) > 0 {
		vh.takePolicies(set)
	}
}

// takePolicies puts policies into force for what is there, that which was taken over
// before, and was governed by them from the first, included.
func (t *policyTable) takePolicies(set [2]policy.Set) {
	changed, err := t.changeGoverned(policy.Unbounded, func(sets *[2]policy.Set) *revision {
		*sets = set
		return &revision{}
	})
	if err != nil {
		panic("broker: policies that were tried cannot be matched: " + err.Error())
	}
	obey(changed)
}

// matchTaken is what policies say of what is taken over: the news among them, so that
// nothing is there before they govern it.
func matchTaken(t policy.Thing, set [2]policy.Set) applied {
	things := []policy.Thing{t}
	if err := policy.Rule(set, things, new([2]int), policy.Unbounded); err != nil {
		panic("broker: policies that were tried cannot be matched: " + err.Error())
	}
	return appliedOf(&things[0])
}

func (vh *VHost) takeExchange(x *catalog.Exchange, set [2]policy.Set) {
	args, _ := x.Args.Table() // they were made of one
	d := exchangeDeclared(x, args)
	kind, _ := ReadExchange(x.Name, d)
	made := vh.newExchange(x.Name, kind, d)
	a := matchTaken(made.governed().Thing, set)
	vh.mu.Lock()
	defer vh.mu.Unlock()
	vh.chargeLocked(ungoverned, &a)
	_ = vh.memory.takeLocked(made.footprint(), "", true)
	vh.placeExchangeLocked(made, a)
}

func (t *queueTable) takeQueue(x *catalog.Queue, policies [2]policy.Set) {
	args, _ := x.Args.Table()
	d := queueDeclared(x, args)
	set, _ := t.settingsOf(x.Name, d)
	q := t.newQueue(x.ID, nil, x.Name, d, set)
	a := matchTaken(q.governed().Thing, policies)
	t.vh.mu.Lock()
	defer t.vh.unlock()
	if there := t.queues[x.Name]; there != nil { // UndeliverableQueue: a dead letter was faster
		t.vh.DefineLocked(x.Key(), there.definition())
		return
	}
	if x.Exclusive { // a policy gives it to a queue that is there, and it is the same connection's
		of := t.queues[strings.TrimSuffix(x.Name, queueargs.SubqueueSuffix)]
		if of == nil || of.owner == nil { // which has closed meanwhile
			return
		}
		q.owner = of.owner
	}
	t.vh.chargeLocked(ungoverned, &a)
	_ = t.vh.memory.takeLocked(q.footprint(), "", true)
	t.placeQueueLocked(q, a)
	q.RenewExpiry()
}

func (vh *VHost) takeBinding(x *catalog.Binding) {
	args, _ := x.Args.Table()
	vh.mu.Lock()
	defer vh.unlock()
	from, to, err := vh.bothEndsLocked(nil, bindingOf(x, args))
	if err != nil {
		vh.undefineLocked(x.Key())
		return
	}
	if from.router.Bind(to, x.RoutingKey, args) {
		_ = vh.memory.takeLocked(bindingFootprint(x.RoutingKey, args), "", true)
		vh.changedLocked()
		from.boundLocked(exchange.Binding[destination]{Destination: to, Key: x.RoutingKey, Args: args})
	}
}
