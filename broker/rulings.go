package broker

import (
	"errors"
	"slices"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// A policy is matched with no lock held, as that may take a while: a change of
// policies on a copy of them and of the names there are (change), a declare on a copy
// of the policies. Then, with VHost.mu held, what came meanwhile is looked at. Under
// the lock nothing is matched but the few names that were declared in the last moment.

// governed is a queue or an exchange, and what policies say of it. One that is
// neither stands for UndeliverableQueue, which has to be possible at any time.
type governed struct {
	policy.Thing
	queue    *Queue
	exchange *Exchange
}

// all lists what policies may govern; called with mu held.
func (vh *VHost) all() []governed {
	list := make([]governed, 0, len(vh.queues)+len(vh.exchanges)+1)
	for _, q := range vh.queues {
		list = append(list, q.governed())
	}
	for _, x := range vh.exchanges {
		list = append(list, x.governed())
	}
	if vh.queues[UndeliverableQueue] == nil {
		list = append(list, governed{Thing: queueThing(policy.ClassicQueue, UndeliverableQueue)})
	}
	return list
}

func (q *Queue) governed() governed {
	g := governed{Thing: queueThing(q.class(), q.name), queue: q}
	g.Ruling = q.policies.Ruling
	return g
}

func (x *Exchange) governed() governed {
	return governed{Thing: policy.Thing{Class: policy.Exchange, Name: x.name, Ruling: x.policies.Ruling}, exchange: x}
}

func queueThing(c policy.Class, name string) policy.Thing {
	return policy.Thing{Class: c, Name: name, Free: name == UndeliverableQueue}
}

// change is a change of policies under way.
type change struct {
	sets  [2]policy.Set
	next  []governed // to be matched; more while the change goes on: what is declared (guarded by vh.mu)
	done  []governed
	spent [2]int
}

// rule matches what is next.
func (c *change) rule(budget int) error {
	err := c.match(func(things []policy.Thing) error { return policy.Rule(c.sets, things, &c.spent, budget) })
	if err != nil {
		return &policy.Invalid{Problems: []string{err.Error()}}
	}
	return nil
}

// match has rule say of what is next what governs it, in the order of names, so that
// a refusal names the same one each time.
func (c *change) match(rule func([]policy.Thing) error) error {
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

// rounds is how often a change of policies matches, without the lock, what was
// declared while it matched before.
const rounds = 4

// revision is what a change of policies makes of a definition.
type revision struct {
	key      string // "": it is saved already
	now, was any    // nil: none
}

// changePolicies makes a change and has all in the virtual host obey it, at once and
// altogether, once it is saved. with changes the sets and says what of that is to be
// saved, nil if there is nothing to change. Errors: *policy.Invalid, ErrNotSaved; then
// nothing has changed.
func (vh *VHost) changePolicies(budget int, with func(*[2]policy.Set) *revision) error {
	changed, err := vh.changeSaved(budget, with)
	vh.completeSubqueues(changed)
	return err
}

// changeSaved is changePolicies without the queues that policies ask for. It returns those
// of which they say something new.
func (vh *VHost) changeSaved(budget int, with func(*[2]policy.Set) *revision) (changed []*Queue, err error) {
	vh.importing.RLock()
	defer vh.importing.RUnlock()
	changed, err = vh.changeGoverned(budget, with)
	obey(changed)
	return changed, err
}

// changeGoverned is changePolicies with importing held. It returns the queues that have
// to obey.
func (vh *VHost) changeGoverned(budget int, with func(*[2]policy.Set) *revision) (changed []*Queue, err error) {
	vh.governing.Lock()
	defer vh.governing.Unlock()
	vh.mu.Lock()
	defer vh.unlock()
	if vh.deleted {
		return nil, noVHost(vh.name)
	}
	c := &change{sets: vh.policies, next: vh.all()}
	r := with(&c.sets)
	if r == nil {
		return nil, nil
	}
	vh.change = c
	defer func() { vh.change = nil }()
	if err = vh.ruleAll(c, budget); err == nil {
		err = vh.revise(r, func() error { return vh.ruleAll(c, budget) })
	}
	if err != nil {
		return nil, err
	}
	return vh.apply(c), nil
}

// revise saves what is revised and then asks once more, as mu, which is held, was
// released for it: if the answer is no, what was is saved again.
func (vh *VHost) revise(r *revision, still func() error) error {
	if r.key == "" {
		return still()
	}
	vh.claims[r.key] = true // nobody else does: governing is held
	defer delete(vh.claims, r.key)
	err := vh.save(r.key, r.now, r.was)
	if err != nil {
		return err
	}
	if err = still(); err != nil {
		_ = vh.save(r.key, r.was, r.was)
	}
	return err
}

// ruleAll matches all there is, and what is declared meanwhile; called with mu held,
// which it gives away for most of that.
func (vh *VHost) ruleAll(c *change, budget int) error {
	for round := 0; len(c.next) > 0; round++ {
		if err := vh.ruleUnlocked(c, budget, round < rounds); err != nil {
			return err
		}
	}
	if vh.deleted {
		return noVHost(vh.name)
	}
	return nil
}

// ruleUnlocked matches what is next; called with mu held, which it gives away
// meanwhile if free.
func (vh *VHost) ruleUnlocked(c *change, budget int, free bool) error {
	if !free {
		return c.rule(budget)
	}
	mine := *c
	c.next = nil
	vh.unlock()
	err := mine.rule(budget)
	vh.mu.Lock()
	c.done, c.spent = mine.done, mine.spent
	return err
}

// apply makes the sets those in force and tells all there is which of them apply to
// it. It returns the queues for which that is news. Called with mu held.
func (vh *VHost) apply(c *change) (changed []*Queue) {
	vh.policies = c.sets
	vh.ruled++
	vh.changed()
	for i := range c.done {
		g := &c.done[i]
		a := appliedOf(&g.Ruling)
		switch {
		case g.queue != nil && vh.queues[g.Name] == g.queue:
			vh.charge(&g.queue.policies, &a)
			if news := !a.equals(&g.queue.policies); news {
				g.queue.govern(a)
				changed = append(changed, g.queue)
			} else {
				g.queue.policies = a
			}
		case g.exchange != nil && vh.exchanges[g.Name] == g.exchange:
			vh.charge(&g.exchange.policies, &a)
			news := !a.equals(&g.exchange.policies)
			if g.exchange.govern(a); news {
				g.exchange.use()
			}
		}
	}
	return changed
}

// charge takes off the budgets what old takes and puts on what new does; called with
// mu held.
func (vh *VHost) charge(old, new *applied) {
	for k := range vh.spent {
		vh.spent[k] += new.Steps[k] - old.Steps[k]
	}
}

func (a *applied) equals(b *applied) bool { return a.Policies == b.Policies }

func appliedOf(r *policy.Ruling) applied {
	return applied{*r, policy.Effective(r.Policies[policy.User], r.Policies[policy.Operator])}
}

// errRuledAnew is what a declare says when policies, or what is left of their budget,
// changed while it matched them.
var errRuledAnew = errors.New("broker: policies changed")

// ruleNew finds which policies are to govern what is about to be declared, with no
// lock held. While the broker is restored none is: restorePolicies does it for all.
// Error: 406, if matching would take too long.
func (vh *VHost) ruleNew(t policy.Thing) (a applied, ruled uint64, err error) {
	vh.mu.RLock()
	sets, spent, ruled := vh.policies, vh.spent, vh.ruled
	vh.mu.RUnlock()
	if vh.restoring() {
		return applied{}, ruled, nil
	}
	things := []policy.Thing{t}
	if err := policy.Rule(sets, things, &spent, policy.Budget); err != nil {
		return applied{}, ruled, amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s", err)
	}
	return appliedOf(&things[0].Ruling), ruled, nil
}

// holds says whether what ruleNew found still holds; called with mu held. Error:
// errRuledAnew, to begin anew.
func (vh *VHost) holds(a *applied, ruled uint64) error {
	if vh.ruled != ruled {
		return errRuledAnew
	}
	for k, steps := range a.Steps {
		if steps > 0 && vh.spent[k]+steps > policy.Budget {
			return errRuledAnew // others were faster; ruleNew says it
		}
	}
	return nil
}

// enter has what is declared governed as ruleNew found, if that still holds; called
// with mu held, last of all that may refuse it. Error: that of holds.
func (vh *VHost) enter(g governed, a *applied, ruled uint64) error {
	if err := vh.holds(a, ruled); err != nil {
		return err
	}
	vh.charge(&applied{}, a)
	if vh.change != nil {
		g.Ruling = a.Ruling
		vh.change.next = append(vh.change.next, g)
	}
	return nil
}

// saveRuled has what is declared saved, if it is durable, and then entered; called with mu
// held, which it releases for that. Errors: that of save, and of enter.
func (vh *VHost) saveRuled(g governed, a *applied, ruled uint64, durable bool, key string, saved any) error {
	if !durable {
		return vh.enter(g, a, ruled)
	}
	err := vh.save(key, saved, nil)
	if err != nil {
		return err
	}
	if err = vh.enter(g, a, ruled); err != nil {
		_ = vh.save(key, nil, nil)
	}
	return err
}
