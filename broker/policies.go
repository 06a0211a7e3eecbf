package broker

import (
	"slices"
	"strings"

	"go.uber.org/zap"

	"curfew/broker/policy"
)

// applied is what policies say of one queue or exchange.
type applied struct {
	policy.Ruling
	definition policy.Definition // of both kinds together; nil: none applies
}

// SetPolicy makes or replaces a policy, which holds from now on for all it
// matches: limits at once, a time to live for what is published afterwards
// (RabbitMQ: Time-To-Live). created is false if it replaced one. Error:
// *policy.Invalid, also for a pattern that takes too long for the names there are
// (policy.Budget); then nothing has changed.
func (vh *VHost) SetPolicy(k policy.Kind, p policy.Policy) (created bool, err error) {
	if p, err = vh.checkPolicy(k, p); err != nil {
		return false, err
	}
	err = vh.changePolicies(policy.Budget, func(sets *[2]policy.Set) *revision {
		old := sets[k].Named(p.Name)
		created = old == nil
		sets[k] = sets[k].With(p)
		return &revision{keyOf(policyKind, vh.name, k.String(), p.Name), vh.policyDefinition(k, p), vh.policyValue(k, old)}
	})
	return created && err == nil, err
}

// checkPolicy returns a policy ready for use, whatever became of it before.
func (vh *VHost) checkPolicy(k policy.Kind, p policy.Policy) (policy.Policy, error) {
	p.NotInForce = ""
	p, err := policy.Check(k, p)
	if err == nil {
		err = vh.b.checkIdle(p.Definition)
	}
	return p, err
}

// tryPolicies says what would be governed how if with changed the policies, and changes
// nothing.
func (vh *VHost) tryPolicies(with func(*[2]policy.Set)) ([]governed, error) {
	vh.mu.RLock()
	c := change{sets: vh.policies, next: vh.all()}
	vh.mu.RUnlock()
	with(&c.sets)
	err := c.rule(policy.Budget)
	return c.done, err
}

// ClearPolicy removes a policy; false: there is none of that name.
func (vh *VHost) ClearPolicy(k policy.Kind, name string) (existed bool, err error) {
	err = vh.changePolicies(policy.Unbounded, func(sets *[2]policy.Set) *revision {
		old := sets[k].Named(name)
		if existed = old != nil; !existed {
			return nil
		}
		sets[k] = sets[k].Without(name)
		return &revision{keyOf(policyKind, vh.name, k.String(), name), nil, vh.policyValue(k, old)}
	})
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

// restorePolicies puts saved policies into force once all that they govern is there.
// One that cannot be stays, and governs nothing; so does, in a copy, one that did not
// govern before.
func (vh *VHost) restorePolicies(saved []*policyDefinition) {
	vh.mu.Lock()
	defer vh.mu.Unlock()
	c := &change{next: vh.all()}
	for _, d := range saved {
		p := d.Policy
		if p.NotInForce == "" {
			var err error
			if p, err = vh.checkPolicy(d.kind(), d.Policy); err != nil {
				p = d.Policy
				p.NotInForce = strings.TrimSpace(err.Error())
			}
		}
		c.sets[d.kind()] = c.sets[d.kind()].With(p)
	}
	_ = c.match(func(things []policy.Thing) error {
		policy.RuleSaved(&c.sets, things, &c.spent)
		return nil
	})
	for k := range c.sets {
		for _, p := range c.sets[k] {
			if p.NotInForce != "" {
				vh.b.log.Warn("a saved policy is not in force; set it anew without what the reason names, or clear it",
					zap.String("vhost", vh.name), zap.Stringer("kind", policy.Kind(k)), zap.String("policy", p.Name),
					zap.String("pattern", p.Pattern), zap.String("reason", p.NotInForce))
			}
		}
	}
	vh.apply(c)
}

// policiesNotInForce counts them in all virtual hosts.
func (b *Broker) policiesNotInForce() (n int) {
	for _, vh := range b.VHosts() {
		for _, k := range []policy.Kind{policy.User, policy.Operator} {
			for _, p := range vh.Policies(k) {
				if p.NotInForce != "" {
					n++
				}
			}
		}
	}
	return n
}

// govern has a queue settle its limits anew; called with vh.mu held. What that
// means for the messages in it, obey does.
func (q *Queue) govern(a applied) {
	q.policies = a
	set := q.asked.under(a.definition, q.declared.Args, q.name)
	q.mu.Lock()
	defer q.mu.Unlock()
	renew := set.expiresMillis != q.set().expiresMillis
	q.settings.Store(&set)
	q.core.SetOptions(set.core)
	if renew {
		q.use()
	} else {
		q.update()
	}
	q.retryNow(q.vh.b.Now()) // what is retained may go elsewhere now
}

// obey has queues drop what stands above limits that have become lower.
func obey(changed []*Queue) {
	for _, q := range changed {
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

// govern settles anew what holds for the exchange: the alternate exchange of its argument,
// else of a policy, and the lower of two limits. A time to live is taken only from policies
// for nothing but exchanges: one for all means the queues, as RabbitMQ has none of
// exchanges, and must not bound what other queues get by an exchange of such a name. Called
// with the virtual host's mu held.
func (x *Exchange) govern(a applied) {
	x.policies = a
	var declared bool
	if x.alternate, declared = x.declared.Args["alternate-exchange"].(string); !declared {
		x.alternate, _ = a.definition.Text("alternate-exchange")
	}
	p := argParser{vh: x.vh, args: x.declared.Args}
	x.ttlMillis = p.span("x-message-ttl", -1, 0)
	for _, ruling := range a.Policies {
		if ruling != nil && ruling.ApplyTo == policy.Exchanges {
			lower(&x.ttlMillis, ruling.Definition, "message-ttl", -1)
		}
	}
	x.ttlMillis = min(x.ttlMillis, MaxTTLMillis)
	if x.idleMillis = p.idle(); !strings.HasPrefix(x.name, "amq.") {
		lower(&x.idleMillis, a.definition, "auto-delete-on-idle", 0)
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
	if p := a.Policies[policy.User]; p != nil {
		user = p.Name
	}
	if p := a.Policies[policy.Operator]; p != nil {
		operator = p.Name
	}
	return user, operator, a.definition
}
