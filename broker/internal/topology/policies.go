package topology

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"curfew/broker/internal/catalog"
	"curfew/broker/policy"
)

// Policies holds the policies of a virtual host, and changes them. All fields except governing are
// guarded by the virtual host's mu.
//
// # A change
//
// Names are matched with patterns while no lock is held. Once a change is saved, sets and version are
// replaced: whatever is declared from then on is matched with the new policies. Then what exists is
// looked through in portions (review). mu is held only to read a portion and to set what has changed in
// it, so nobody waits for a change, however many names there are. In the meantime some queues still
// have their old policies. When the change returns, none has.
type Policies struct {
	vh *VHost

	governing sync.Mutex // one change of policies at a time; before mu

	policies      [2]policy.Set       // by policy.Kind
	policyVersion uint64              // raised by each change
	combined      map[ruling]*applied // what policies set that are in force together
	applied       atomic.Uint64       // raised when settings of queues have changed; not guarded
	deferred      bool                // changes are not applied yet: only in a copy
}

// ruling is the policies that apply to something, by policy.Kind; nil: none does.
type ruling [2]*policy.Policy

// applied is what policies set. It is shared and not changed.
type applied struct {
	ruling
	definition policy.Definition // of both kinds together; nil: none applies
}

// ungoverned is for queues and exchanges to which no policy applies.
var ungoverned = &applied{}

// definition is what the policies of a ruling set together.
func (g *governed) definition() policy.Definition {
	user, operator := g.ruling[policy.User], g.ruling[policy.Operator]
	if g.queue != nil && g.queue.Name == policy.UndeliverableQueue {
		user, operator = forUndeliverable(user), forUndeliverable(operator)
	}
	return policy.Effective(user, operator)
}

// forUndeliverable is a policy as it applies to UndeliverableQueue: without a time to live, unless
// its pattern names the queue. A policy that limits the life of messages in all queues does not
// mean those that are kept because they could not be routed.
func forUndeliverable(p *policy.Policy) *policy.Policy {
	if p == nil || strings.Contains(strings.ReplaceAll(p.Pattern, `\`, ""), policy.UndeliverableQueue) {
		return p
	}
	spared := *p
	spared.Definition = maps.Clone(p.Definition)
	delete(spared.Definition, "message-ttl")
	return &spared
}

// appliedLocked is what the policies of a ruling set. All queues with the same policies share it.
func (t *Policies) appliedLocked(g *governed) *applied {
	switch {
	case g.ruling == ruling{}:
		return ungoverned
	case g.queue != nil && g.queue.Name == policy.UndeliverableQueue:
		return &applied{g.ruling, g.definition()}
	case t.combined[g.ruling] == nil:
		t.combined[g.ruling] = &applied{g.ruling, g.definition()}
	}
	return t.combined[g.ruling]
}

// Set makes or replaces a policy. It applies to everything that it matches: its
// limits at once, its time to live to messages published afterwards (RabbitMQ:
// Time-To-Live). created is false if it replaced one. Errors: *policy.Invalid, ErrNotSaved; then
// nothing has changed.
func (t *Policies) Set(k policy.Kind, p policy.Policy) (created bool, err error) {
	if p, err = t.checkPolicy(k, p); err != nil {
		return false, err
	}
	most := t.vh.registry.ceilings.Policies
	err = t.changePolicies(k, p.Name, func(old *policy.Policy, s policy.Set) (policy.Set, error) {
		if created = old == nil; created && len(s) >= most {
			return nil, &policy.Invalid{Problems: []string{fmt.Sprintf("policy limit in vhost '%s' (%d) is reached", t.vh.guard.name, most)}}
		}
		return s.With(p), nil
	})
	return created && err == nil, err
}

// checkPolicy returns a policy ready for use, even if it was not in force before.
func (t *Policies) checkPolicy(k policy.Kind, p policy.Policy) (policy.Policy, error) {
	p.NotInForce = ""
	p, err := policy.Check(k, p)
	if n, set := p.Definition.Integer("auto-delete-on-idle"); err == nil && set && n < t.vh.registry.defaults.IdleMinimumMillis {
		err = &policy.Invalid{Problems: []string{fmt.Sprintf("%d is not a valid idle period: the minimum is %d", n, t.vh.registry.defaults.IdleMinimumMillis)}}
	}
	return p, err
}

// Clear removes a policy. existed is false if no policy has that name.
func (t *Policies) Clear(k policy.Kind, name string) (existed bool, err error) {
	err = t.changePolicies(k, name, func(old *policy.Policy, s policy.Set) (policy.Set, error) {
		existed = old != nil
		return s.Without(name), nil
	})
	return existed, err
}

// List lists the policies of a kind by name.
func (t *Policies) List(k policy.Kind) []policy.Policy {
	all := []policy.Policy{}
	for _, p := range t.sets()[k] {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b policy.Policy) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Get returns the policy of that name.
func (t *Policies) Get(k policy.Kind, name string) (policy.Policy, bool) {
	if p := t.sets()[k].Named(name); p != nil {
		return *p, true
	}
	return policy.Policy{}, false
}

func (t *Policies) sets() [2]policy.Set {
	t.vh.guard.mu.RLock()
	defer t.vh.guard.mu.RUnlock()
	return t.policies
}

// NotInForce counts the saved policies that are not in force.
func (t *Policies) NotInForce() (n int) {
	for _, s := range t.sets() {
		for _, p := range s {
			if p.NotInForce != "" {
				n++
			}
		}
	}
	return n
}

// changePolicies changes the policy of a kind and name. edit returns the policies of the kind after the
// change; old is the policy of that name, nil if there is none. Errors: edit's, ErrNotSaved; then nothing
// has changed.
func (t *Policies) changePolicies(k policy.Kind, name string, edit func(old *policy.Policy, s policy.Set) (policy.Set, error)) error {
	changed, err := t.changeSaved(k, name, edit)
	t.vh.Queues.CompleteSubqueues(changed)
	return err
}

// changeSaved is changePolicies without declaring the sub-queues that policies ask for. It
// returns the queues whose policies have changed.
func (t *Policies) changeSaved(k policy.Kind, name string, edit func(old *policy.Policy, s policy.Set) (policy.Set, error)) (changed []*Queue, err error) {
	t.vh.guard.importing.RLock()
	defer t.vh.guard.importing.RUnlock()
	t.governing.Lock()
	defer t.governing.Unlock()
	was := t.sets()
	now, old := was, was[k].Named(name)
	if now[k], err = edit(old, was[k]); err != nil || old == nil && now[k].Named(name) == nil {
		return nil, err
	}
	key := catalog.Key(catalog.PolicyKind, t.vh.guard.name, k.String(), name)
	err = t.replace(now, func() error {
		t.vh.guard.claims[key] = true // nobody else claims it: governing is held
		defer delete(t.vh.guard.claims, key)
		return t.vh.guard.saveLocked(key, t.savedPolicy(k, now[k].Named(name)), t.savedPolicy(k, old))
	})
	if err != nil {
		return nil, err
	}
	if t.deferred {
		return nil, nil
	}
	changed = t.govern(was)
	t.vh.registry.Trim(changed)
	return changed, nil
}

// Defer lets changes of policies wait for apply, in a copy of the broker that nobody else
// uses. Until then only what is declared has the new policies.
func (t *Policies) Defer() (apply func()) {
	was := t.sets()
	t.deferred = true
	return func() {
		t.deferred = false
		t.vh.Queues.CompleteSubqueues(t.govern(was))
	}
}

// savedPolicy is the definition of a policy, nil for none.
func (t *Policies) savedPolicy(k policy.Kind, p *policy.Policy) any {
	if p == nil {
		return nil
	}
	return t.policyDefinition(k, *p)
}

// replace replaces the sets, once save, called with mu held, has returned. nil: they are saved.
func (t *Policies) replace(sets [2]policy.Set, save func() error) error {
	return t.vh.guard.locked(func() error {
		if save != nil {
			if err := save(); err != nil {
				return err
			}
		}
		t.policies, t.combined = sets, map[ruling]*applied{}
		t.policyVersion++
		return nil
	})
}

// governed is a queue or an exchange, and the policies that apply to it.
type governed struct {
	queue    *Queue
	exchange *Exchange
	ruling
}

func (g *governed) classAndName() (policy.Class, string) {
	switch {
	case g.exchange != nil:
		return policy.Exchange, g.exchange.name
	case g.queue.Arguments.Type == policy.Quorum:
		return policy.QuorumQueue, g.queue.Name
	}
	return policy.ClassicQueue, g.queue.Name
}

// portion is how many queues or exchanges are read, or set, at a time with mu held: some 20 µs.
// Matching them with 1,000 policies takes about a millisecond.
const portion = 64

// eachPortion calls fn, with no lock held, with all queues and exchanges in portions, which fn may
// change. It leaves out some of what is declared meanwhile.
func (t *Policies) eachPortion(fn func([]governed)) {
	t.vh.guard.mu.RLock()
	list := make([]governed, 0, portion)
	add := func(g governed) {
		if list = append(list, g); len(list) == portion {
			t.vh.guard.mu.RUnlock()
			fn(list)
			runtime.Gosched() // what is due does not wait until this goroutine is preempted, 10 ms
			t.vh.guard.mu.RLock()
			list = list[:0]
		}
	}
	for _, q := range t.vh.Queues.queues { // a map may change between two steps of a range
		add(governed{queue: q, ruling: q.policies.ruling})
	}
	for _, x := range t.vh.Exchanges.exchanges {
		add(governed{exchange: x, ruling: x.policies.ruling})
	}
	t.vh.guard.mu.RUnlock()
	fn(list)
}

// review calls fn with everything that has other policies under sets than it had under was.
func (t *Policies) review(was, sets [2]policy.Set, fn func([]governed)) {
	var changes [2]*policy.Change
	for k := range changes {
		changes[k] = policy.NewChange(was[k], sets[k])
	}
	t.eachPortion(func(list []governed) {
		differ := list[:0]
		for _, g := range list {
			class, name := g.classAndName()
			old := g.ruling
			for k, c := range changes {
				g.ruling[k] = c.Governing(old[k], class, name)
			}
			if g.ruling != old {
				differ = append(differ, g)
			}
		}
		fn(differ)
	})
}

// govern applies the policies to everything, after they were was. It returns the queues whose policies
// have changed. Called with governing held, so that nobody else changes policies.
func (t *Policies) govern(was [2]policy.Set) (changed []*Queue) {
	t.review(was, t.sets(), func(list []governed) {
		queues := t.setPolicies(list)
		for _, q := range queues {
			q.applySettings()
		}
		t.applied.Add(uint64(len(queues)))
		changed = append(changed, queues...)
	})
	return changed
}

// setPolicies sets the policies of what still exists, and returns the queues among it.
func (t *Policies) setPolicies(list []governed) (queues []*Queue) {
	if len(list) == 0 {
		return nil
	}
	t.vh.guard.lock()
	defer t.vh.guard.unlock()
	for i := range list {
		g := &list[i]
		switch {
		case g.queue != nil && t.vh.Queues.queues[g.queue.Name] == g.queue:
			g.queue.policies = t.appliedLocked(g)
			queues = append(queues, g.queue)
		case g.exchange != nil && t.vh.Exchanges.exchanges[g.exchange.name] == g.exchange:
			g.exchange.governLocked(t.appliedLocked(g))
			g.exchange.useLocked()
			t.vh.changedLocked()
		}
	}
	return queues
}

// saveNewLocked saves what is declared, if it is durable, and returns what the policies set for it at
// this moment. It releases mu while saving and matching. Errors: those of saveLocked.
func (t *Policies) saveNewLocked(g governed, durable bool, key string, saved any) (*applied, error) {
	if durable {
		if err := t.vh.guard.saveLocked(key, saved, nil); err != nil {
			return nil, err
		}
	}
	return t.matchLocked(g)
}

// matchLocked finds what the policies set for something that is about to be placed: at once after this
// returns, with mu still held. It releases mu while it matches.
func (t *Policies) matchLocked(g governed) (*applied, error) {
	for {
		sets, version := t.policies, t.policyVersion
		if len(sets[policy.User])+len(sets[policy.Operator]) > 0 {
			t.vh.guard.unlock()
			g = find(sets, g)
			t.vh.guard.lock()
		}
		if t.vh.guard.deleted {
			return nil, NoVHost(t.vh.guard.name)
		}
		if t.policyVersion == version {
			return t.appliedLocked(&g), nil
		}
	}
}

// find matches something with all policies.
func find(sets [2]policy.Set, g governed) governed {
	class, name := g.classAndName()
	for k := range sets {
		g.ruling[k] = sets[k].Governing(class, name)
	}
	return g
}

// applySettings computes the settings of a queue again. It leaves its messages alone, also those above
// a lower limit. Called with governing or mu held.
func (q *Queue) applySettings() {
	q.Messages.Apply(q.vh.registry.settings.share(q.under(q.policies.definition)))
}

// under are the settings of a queue by its arguments and what policies set.
func (q *Queue) under(d policy.Definition) policy.Settings {
	declared := q.declared.Load()
	return d.Apply(*declared.settings, declared.Args, q.Name)
}

// governLocked computes what applies to the exchange: the alternate exchange of its argument,
// otherwise of a policy, and the lower of two limits. A time to live is taken only from policies
// that apply to exchanges alone. One that applies to all means the queues, as RabbitMQ has none
// for exchanges, and must not limit what an exchange with a matching name routes to other queues.
// Called with the virtual host's mu held.
func (x *Exchange) governLocked(a *applied) {
	x.policies = a
	var declared bool
	if x.alternate, declared = x.declared.Args["alternate-exchange"].(string); !declared {
		x.alternate, _ = a.definition.Text("alternate-exchange")
	}
	x.ttlMillis, x.idleMillis = policy.ExchangeLimits(x.vh.registry.defaults, x.declared.Args)
	for _, p := range a.ruling {
		if p != nil && p.ApplyTo == policy.Exchanges {
			p.Definition.Lower(&x.ttlMillis, "message-ttl", -1)
		}
	}
	x.ttlMillis = min(x.ttlMillis, policy.MaxTTLMillis)
	if !strings.HasPrefix(x.name, "amq.") {
		a.definition.Lower(&x.idleMillis, "auto-delete-on-idle", 0)
	}
}

// Policies names the policy and the operator policy that apply to the queue, ""
// for none, and what they set together, nil if neither applies. The definition
// is not to be changed.
func (q *Queue) Policies() (user, operator string, effective policy.Definition) {
	q.vh.guard.mu.RLock()
	defer q.vh.guard.mu.RUnlock()
	return q.policies.names()
}

// PoliciesOf is Queue.Policies for an exchange; ok is false if it does not exist.
func (t *Exchanges) PoliciesOf(name string) (user, operator string, effective policy.Definition, ok bool) {
	t.vh.guard.mu.RLock()
	defer t.vh.guard.mu.RUnlock()
	x, ok := t.exchanges[name]
	if !ok {
		return "", "", nil, false
	}
	user, operator, effective = x.policies.names()
	return user, operator, effective, true
}

func (a *applied) names() (user, operator string, effective policy.Definition) {
	if p := a.ruling[policy.User]; p != nil {
		user = p.Name
	}
	if p := a.ruling[policy.Operator]; p != nil {
		operator = p.Name
	}
	return user, operator, a.definition
}
