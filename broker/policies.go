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
	var governed []*Queue
	key := keyOf(policyKind, vh.name, k.String(), p.Name)
	err = vh.claimed(key, func() error {
		old := vh.policies[k].Named(p.Name)
		if err := vh.save(key, vh.policyDefinition(k, p), vh.policyValue(k, old)); err != nil {
			return err
		}
		created = old == nil
		vh.policies[k] = vh.policies[k].With(p)
		governed = vh.governAll()
		return nil
	})
	obey(governed)
	return created, err
}

// ClearPolicy removes a policy; false: there is none of that name.
func (vh *VHost) ClearPolicy(k policy.Kind, name string) (existed bool, err error) {
	var governed []*Queue
	key := keyOf(policyKind, vh.name, k.String(), name)
	err = vh.claimed(key, func() error {
		old := vh.policies[k].Named(name)
		if existed = old != nil; !existed {
			return nil
		}
		if err := vh.save(key, nil, vh.policyValue(k, old)); err != nil {
			return err
		}
		vh.policies[k] = vh.policies[k].Without(name)
		governed = vh.governAll()
		return nil
	})
	obey(governed)
	return existed, err
}

// policyValue is what the definition of a policy says, nil for none.
func (vh *VHost) policyValue(k policy.Kind, p *policy.Policy) any {
	if p == nil {
		return nil
	}
	return vh.policyDefinition(k, *p)
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
	vh.changed()
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

// obey has queues drop what stands above limits that have become lower.
func obey(governed []*Queue) {
	for _, q := range governed {
		q.obey()
	}
}

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
