package broker

import (
	"slices"
	"strings"

	"curfew/broker/policy"
)

// applied is what policies say of one queue or exchange.
type applied struct {
	user, operator *policy.Policy
	definition     policy.Definition // both together; nil: none applies
}

// SetPolicy makes or replaces a policy, which holds from now on for all it
// matches: limits at once, a time to live for what is published afterwards
// (RabbitMQ: Time-To-Live). created is false if it replaced one. Error:
// *policy.Invalid.
func (vh *VHost) SetPolicy(k policy.Kind, p policy.Policy) (created bool, err error) {
	if p, err = policy.Check(k, p); err != nil {
		return false, err
	}
	err = vh.changePolicies(func() bool {
		created = vh.policies[k].Named(p.Name) == nil
		vh.policies[k] = vh.policies[k].With(p)
		d := vh.policyDefinition(k, p)
		vh.define(d.key(), d)
		return true
	})
	return created, err
}

// ClearPolicy removes a policy; false: there is none of that name.
func (vh *VHost) ClearPolicy(k policy.Kind, name string) (existed bool, err error) {
	err = vh.changePolicies(func() bool {
		if existed = vh.policies[k].Named(name) != nil; existed {
			vh.policies[k] = vh.policies[k].Without(name)
			vh.undefine(keyOf(policyKind, vh.name, k.String(), name))
		}
		return existed
	})
	return existed, err
}

// Policies lists the policies of a kind by name.
func (vh *VHost) Policies(k policy.Kind) []policy.Policy {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	all := make([]policy.Policy, 0, len(vh.policies[k]))
	for _, p := range vh.policies[k] {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b policy.Policy) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Policy returns the policy of that name.
func (vh *VHost) Policy(k policy.Kind, name string) (policy.Policy, bool) {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	if p := vh.policies[k].Named(name); p != nil {
		return *p, true
	}
	return policy.Policy{}, false
}

// changePolicies makes a change and has all in the virtual host obey it.
func (vh *VHost) changePolicies(change func() bool) error {
	var governed []*Queue
	err := vh.mutate(func() error {
		if !change() {
			return nil
		}
		governed = vh.governAll()
		vh.changed()
		return nil
	})
	for _, q := range governed {
		q.obey()
	}
	return err
}

// governAll tells every queue and exchange which policies apply to it now, and
// returns the queues for which that is news; called with mu held.
func (vh *VHost) governAll() (changed []*Queue) {
	for name, x := range vh.exchanges {
		x.govern(vh.policiesFor(policy.Exchange, name))
	}
	for name, q := range vh.queues {
		if a := vh.policiesFor(q.class(), name); !a.equals(&q.policies) {
			q.govern(a)
			changed = append(changed, q)
		}
	}
	return changed
}

func (a *applied) equals(b *applied) bool { return a.user == b.user && a.operator == b.operator }

// policiesFor finds what applies; called with mu held.
func (vh *VHost) policiesFor(c policy.Class, name string) applied {
	return appliedOf(vh.policies, c, name)
}

func appliedOf(sets [2]policy.Set, c policy.Class, name string) applied {
	a := applied{user: sets[policy.User].Match(c, name), operator: sets[policy.Operator].Match(c, name)}
	a.definition = policy.Effective(a.user, a.operator)
	return a
}

// govern has a queue settle its limits anew; called with vh.mu held. What that
// means for the messages in it, obey does.
func (q *Queue) govern(a applied) {
	q.policies = a
	set := q.asked.under(a.definition, q.declared.Args)
	q.mu.Lock()
	defer q.mu.Unlock()
	renew := set.expiresMillis != q.set().expiresMillis
	q.settings.Store(&set)
	q.core.SetOptions(set.core)
	if renew {
		q.use()
	}
	q.retryNow(q.vh.b.Now()) // what is retained may go elsewhere now
}

// obey drops what stands above limits that have become lower.
func (q *Queue) obey() {
	s := q.vh.b.step()
	defer s.done()
	q.lock(s)
	defer q.mu.Unlock()
	if q.deleted {
		return
	}
	q.core.Trim(&s.fx)
	q.finish(s, Lazy)
}

// class is what policies take the queue for.
func (q *Queue) class() policy.Class {
	if q.asked.kind == Quorum {
		return policy.QuorumQueue
	}
	return policy.ClassicQueue
}

// govern settles the alternate exchange anew: the argument's, else the policy's.
// Called with the virtual host's mu held.
func (x *Exchange) govern(a applied) {
	x.policies = a
	var declared bool
	if x.alternate, declared = x.declared.Args["alternate-exchange"].(string); !declared {
		x.alternate, _ = a.definition.Text("alternate-exchange")
	}
}

// Policies names the policy and the operator policy that apply to the queue, ""
// for none, and what they set together, nil if neither applies. The definition
// is not to be changed.
func (q *Queue) Policies() (user, operator string, effective policy.Definition) {
	q.vh.mu.RLock()
	defer q.vh.mu.RUnlock()
	return q.policies.names()
}

// ExchangePolicies is Queue.Policies for an exchange. ok is false if there is none
// of that name.
func (vh *VHost) ExchangePolicies(name string) (user, operator string, effective policy.Definition, ok bool) {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	x, ok := vh.exchanges[name]
	if !ok {
		return "", "", nil, false
	}
	user, operator, effective = x.policies.names()
	return user, operator, effective, true
}

func (a *applied) names() (user, operator string, effective policy.Definition) {
	if a.user != nil {
		user = a.user.Name
	}
	if a.operator != nil {
		operator = a.operator.Name
	}
	return user, operator, a.definition
}
