package topology

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/internal/queueargs"
	"curfew/broker/policy"
)

// Policies are matched with no lock held, since that may take a while: a change of policies
// works on a copy of the policies and of all names (change), a declare on a copy of the
// policies. Then, with VHost.mu held, whatever has changed since then is matched. So under the
// lock only the few names are matched that were declared at the last moment.

// governed is a queue or an exchange, and the policies that apply to it. One that is
// neither stands for UndeliverableQueue, which must remain possible at any time.
type governed struct {
	policy.Thing
	queue    *Queue
	exchange *Exchange
}

// allLocked lists everything that policies may govern.
func (vh *VHost) allLocked() []governed {
	list := make([]governed, 0, len(vh.queues)+len(vh.exchanges)+1)
	for _, q := range vh.queues {
		list = append(list, q.governed())
	}
	for _, x := range vh.exchanges {
		list = append(list, x.governed())
	}
	if vh.queues[queueargs.UndeliverableQueue] == nil {
		list = append(list, governed{Thing: queueThing(policy.ClassicQueue, queueargs.UndeliverableQueue)})
	}
	return list
}

func (q *Queue) governed() governed {
	g := governed{Thing: queueThing(q.class(), q.Name()), queue: q}
	g.Ruling = q.policies.Ruling
	return g
}

func (x *Exchange) governed() governed {
	return governed{Thing: policy.Thing{Class: policy.Exchange, Name: x.name, Ruling: x.policies.Ruling}, exchange: x}
}

func queueThing(c policy.Class, name string) policy.Thing {
	return policy.Thing{Class: c, Name: name, Free: name == queueargs.UndeliverableQueue}
}

// change is a change of policies under way.
type change struct {
	sets  [2]policy.Set
	next  []governed // to be matched, including what is declared during the change (guarded by vh.mu)
	done  []governed
	spent [2]int
}

// match matches next.
func (c *change) match(budget int) error {
	err := c.matchWith(func(things []policy.Thing) error { return policy.Rule(c.sets, things, &c.spent, budget) })
	if err != nil {
		return &policy.Invalid{Problems: []string{err.Error()}}
	}
	return nil
}

// matchWith asks rule for the policies of everything in next, in the order of names, so that
// a refusal names the same one each time.
func (c *change) matchWith(rule func([]policy.Thing) error) error {
	slices.SortFunc(c.next, func(a, b governed) int { return strings.Compare(a.Name, b.Name) })
	things := make([]policy.Thing, len(c.next))
	for i := range c.next {
		things[i] = c.next[i].Thing
	}
	if err := rule(things); err != nil {
		return err
	}
	for i := range things {
		c.next[i].Thing = things[i]
	}
	c.done, c.next = append(c.done, c.next...), nil
	return nil
}

// rounds is how often a change of policies matches without the lock. Each round has what was
// declared during the one before.
const rounds = 4

// revision is the change of one definition by a change of policies.
type revision struct {
	key      string // "": it is already saved
	now, was any    // nil: none
}

// changePolicies makes a change. Once it is saved, it takes effect for the whole virtual host
// at one instant. edit changes the sets and returns the definition to save, nil if there is
// nothing to change. Errors: *policy.Invalid, ErrNotSaved; then nothing has changed.
func (t *policyTable) changePolicies(budget int, edit func(*[2]policy.Set) *revision) error {
	changed, err := t.changeSaved(budget, edit)
	t.vh.CompleteSubqueues(changed)
	return err
}

// changeSaved is changePolicies without declaring the sub-queues that policies ask for. It
// returns the queues whose policies have changed.
func (t *policyTable) changeSaved(budget int, edit func(*[2]policy.Set) *revision) (changed []*Queue, err error) {
	t.vh.importing.RLock()
	defer t.vh.importing.RUnlock()
	changed, err = t.changeGoverned(budget, edit)
	trimAll(changed)
	return changed, err
}

// changeGoverned is changePolicies with importing held. It returns the queues whose policies
// have changed; they are not trimmed yet.
func (t *policyTable) changeGoverned(budget int, edit func(*[2]policy.Set) *revision) (changed []*Queue, err error) {
	t.governing.Lock()
	defer t.governing.Unlock()
	t.vh.mu.Lock()
	defer t.vh.unlock()
	if t.vh.deleted {
		return nil, NoVHost(t.vh.name)
	}
	c := &change{sets: t.policies, next: t.vh.allLocked()}
	r := edit(&c.sets)
	if r == nil {
		return nil, nil
	}
	t.change = c
	defer func() { t.change = nil }()
	if err = t.matchAllLocked(c, budget); err == nil {
		err = t.reviseLocked(r, func() error { return t.matchAllLocked(c, budget) })
	}
	if err != nil {
		return nil, err
	}
	return t.applyLocked(c), nil
}

// reviseLocked saves the revision. It releases mu for that, so it calls check afterwards: if that
// fails, the old definition is saved again.
func (t *policyTable) reviseLocked(r *revision, check func() error) error {
	if r.key == "" {
		return check()
	}
	t.vh.claims[r.key] = true // nobody else claims it: governing is held
	defer delete(t.vh.claims, r.key)
	err := t.vh.saveLocked(r.key, r.now, r.was)
	if err != nil {
		return err
	}
	if err = check(); err != nil {
		_ = t.vh.saveLocked(r.key, r.was, r.was)
	}
	return err
}

// matchAllLocked matches everything, including what is declared while it runs. It releases mu for
// most of that.
func (t *policyTable) matchAllLocked(c *change, budget int) error {
	for round := 0; len(c.next) > 0; round++ {
		if err := t.matchNextLocked(c, budget, round < rounds); err != nil {
			return err
		}
	}
	if t.vh.deleted {
		return NoVHost(t.vh.name)
	}
	return nil
}

// matchNextLocked matches next. With free it releases mu while it does.
func (t *policyTable) matchNextLocked(c *change, budget int, free bool) error {
	if !free {
		return c.match(budget)
	}
	mine := *c
	c.next = nil
	t.vh.unlock()
	err := mine.match(budget)
	t.vh.mu.Lock()
	c.done, c.spent = mine.done, mine.spent
	return err
}

// applyLocked puts the sets into force and applies the matching policies to all queues and
// exchanges. It returns the queues whose policies have changed.
func (t *policyTable) applyLocked(c *change) (changed []*Queue) {
	t.policies = c.sets
	t.policyVersion++
	t.vh.changedLocked()
	for i := range c.done {
		g := &c.done[i]
		a := appliedOf(&g.Thing)
		switch {
		case g.queue != nil && t.vh.queues[g.Name] == g.queue:
			t.chargeLocked(g.queue.policies, &a)
			if a.equals(g.queue.policies) {
				g.queue.policies = a.keep()
			} else {
				g.queue.governLocked(a)
				changed = append(changed, g.queue)
			}
		case g.exchange != nil && t.vh.exchanges[g.Name] == g.exchange:
			t.chargeLocked(&g.exchange.policies, &a)
			differ := !a.equals(&g.exchange.policies)
			if g.exchange.governLocked(a); differ {
				g.exchange.useLocked()
			}
		}
	}
	return changed
}

// chargeLocked replaces the steps of old by those of new in what is spent of the budgets.
func (t *policyTable) chargeLocked(old, new *applied) {
	for k := range t.spent {
		t.spent[k] += new.Steps[k] - old.Steps[k]
	}
}

func (a *applied) equals(b *applied) bool { return a.Policies == b.Policies }

// appliedOf is what the matching policies set for t.
func appliedOf(t *policy.Thing) applied {
	user, operator := t.Policies[policy.User], t.Policies[policy.Operator]
	if t.Name == queueargs.UndeliverableQueue && t.Class != policy.Exchange {
		user, operator = forUndeliverable(user), forUndeliverable(operator)
	}
	return applied{t.Ruling, policy.Effective(user, operator)}
}

// forUndeliverable is a policy as it applies to UndeliverableQueue: without a time to live, unless
// its pattern names the queue. A policy that limits the life of messages in all queues does not
// mean those that are kept because they could not be routed.
func forUndeliverable(p *policy.Policy) *policy.Policy {
	if p == nil || strings.Contains(strings.ReplaceAll(p.Pattern, `\`, ""), queueargs.UndeliverableQueue) {
		return p
	}
	spared := *p
	spared.Definition = maps.Clone(p.Definition)
	delete(spared.Definition, "message-ttl")
	return &spared
}

// errMatchAgain is the error of a declare for which the policies, or the rest of their budget,
// changed while it matched them.
var errMatchAgain = errors.New("broker: policies changed")

// match finds the policies for something that is about to be declared, with no lock held.
// While the broker is being restored it finds none: RestorePolicies matches everything at
// once. Error: 406, if matching would take too long.
func (t *policyTable) match(thing policy.Thing) (a applied, version uint64, err error) {
	t.vh.mu.RLock()
	sets, spent, version := t.policies, t.spent, t.policyVersion
	t.vh.mu.RUnlock()
	if t.vh.registry.restoring() {
		return applied{}, version, nil
	}
	things := []policy.Thing{thing}
	if err := policy.Rule(sets, things, &spent, policy.Budget); err != nil {
		return applied{}, version, amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s", err)
	}
	return appliedOf(&things[0]), version, nil
}

// holdsLocked checks that the result of match still holds. Error: errMatchAgain.
func (t *policyTable) holdsLocked(a *applied, version uint64) error {
	if t.policyVersion != version {
		return errMatchAgain
	}
	for k, steps := range a.Steps {
		if steps > 0 && t.spent[k]+steps > policy.Budget {
			return errMatchAgain // others were faster; match reports it
		}
	}
	return nil
}

// enterLocked counts the steps of a declare as match found them, if that result still holds, and
// includes the queue or exchange in a change under way. It is the last check of a declare. Error:
// that of holdsLocked.
func (t *policyTable) enterLocked(g governed, a *applied, version uint64) error {
	if err := t.holdsLocked(a, version); err != nil {
		return err
	}
	t.chargeLocked(ungoverned, a)
	if t.change != nil {
		g.Ruling = a.Ruling
		t.change.next = append(t.change.next, g)
	}
	return nil
}

// saveGovernedLocked saves what is declared, if it is durable, and then enters it. It releases mu
// while saving. Errors: those of saveLocked and of enterLocked.
func (t *policyTable) saveGovernedLocked(g governed, a *applied, version uint64, durable bool, key string, saved any) error {
	if !durable {
		return t.enterLocked(g, a, version)
	}
	err := t.vh.saveLocked(key, saved, nil)
	if err != nil {
		return err
	}
	if err = t.enterLocked(g, a, version); err != nil {
		_ = t.vh.saveLocked(key, nil, nil)
	}
	return err
}
