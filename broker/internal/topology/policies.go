package topology

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"curfew/broker/internal/catalog"
	"curfew/broker/internal/queueargs"
	"curfew/broker/policy"
)

// policyTable holds the policies of a virtual host, and changes them. All fields except governing are
// guarded by the virtual host's mu.
type policyTable struct {
	vh *VHost

	governing sync.Mutex // one change of policies at a time; before mu

	policies      [2]policy.Set // by policy.Kind
	policyVersion uint64        // raised by each change of policies
	spent         [2]int        // steps of policy.Budget that all queues and exchanges take, by policy.Kind
	change        *change       // under way; what is declared in the meantime is added to it
}

// applied is what policies set for one queue or exchange.
type applied struct {
	policy.Ruling
	definition policy.Definition // of both kinds together; nil: none applies
}

// ungoverned is for queues and exchanges to which no policy applies. It is not changed.
var ungoverned = &applied{}

// keep returns what a queue stores for a. Queues without policies share one.
func (a applied) keep() *applied {
	if a.Policies == ungoverned.Policies && a.Verdicts == nil && a.Steps == ungoverned.Steps {
		return ungoverned
	}
	kept := a // &a would be allocated in both cases
	return &kept
}

// SetPolicy makes or replaces a policy. It applies to everything that it matches: its
// limits at once, its time to live to messages published afterwards (RabbitMQ:
// Time-To-Live). created is false if it replaced one. Error: *policy.Invalid, also
// for a pattern that takes too long to match all names (policy.Budget); then nothing
// has changed.
func (t *policyTable) SetPolicy(k policy.Kind, p policy.Policy) (created bool, err error) {
	if p, err = t.checkPolicy(k, p); err != nil {
		return false, err
	}
	err = t.changePolicies(policy.Budget, func(sets *[2]policy.Set) *revision {
		old := sets[k].Named(p.Name)
		created = old == nil
		sets[k] = sets[k].With(p)
		return &revision{catalog.Key(catalog.PolicyKind, t.vh.name, k.String(), p.Name), t.policyDefinition(k, p), t.policyValue(k, old)}
	})
	return created && err == nil, err
}

// checkPolicy returns a policy ready for use, even if it was not in force before.
func (t *policyTable) checkPolicy(k policy.Kind, p policy.Policy) (policy.Policy, error) {
	p.NotInForce = ""
	p, err := policy.Check(k, p)
	if err == nil {
		err = t.vh.registry.checkIdle(p.Definition)
	}
	return p, err
}

// tryPolicies returns which policies would apply to everything after edit, and changes nothing.
func (t *policyTable) tryPolicies(edit func(*[2]policy.Set)) ([]governed, error) {
	t.vh.mu.RLock()
	c := change{sets: t.policies, next: t.vh.allLocked()}
	t.vh.mu.RUnlock()
	edit(&c.sets)
	err := c.match(policy.Budget)
	return c.done, err
}

// ClearPolicy removes a policy. existed is false if no policy has that name.
func (t *policyTable) ClearPolicy(k policy.Kind, name string) (existed bool, err error) {
	err = t.changePolicies(policy.Unbounded, func(sets *[2]policy.Set) *revision {
		old := sets[k].Named(name)
		if existed = old != nil; !existed {
			return nil
		}
		sets[k] = sets[k].Without(name)
		return &revision{catalog.Key(catalog.PolicyKind, t.vh.name, k.String(), name), nil, t.policyValue(k, old)}
	})
	return existed, err
}

// policyValue is the definition of a policy, nil for none.
func (t *policyTable) policyValue(k policy.Kind, p *policy.Policy) any {
	if p == nil {
		return nil
	}
	return t.policyDefinition(k, *p)
}

// Policies lists the policies of a kind by name.
func (t *policyTable) Policies(k policy.Kind) []policy.Policy {
	t.vh.mu.RLock()
	defer t.vh.mu.RUnlock()
	all := make([]policy.Policy, 0, len(t.policies[k]))
	for _, p := range t.policies[k] {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b policy.Policy) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Policy returns the policy of that name.
func (t *policyTable) Policy(k policy.Kind, name string) (policy.Policy, bool) {
	t.vh.mu.RLock()
	defer t.vh.mu.RUnlock()
	if p := t.policies[k].Named(name); p != nil {
		return *p, true
	}
	return policy.Policy{}, false
}

// RestorePolicies puts saved policies into force, once all queues and exchanges are
// restored. A policy that cannot be put into force is kept, and applies to nothing. In a
// copy of the broker, a policy that is not in force in the original stays so.
func (t *policyTable) RestorePolicies(saved []*catalog.Policy) {
	t.vh.mu.Lock()
	defer t.vh.mu.Unlock()
	c := &change{next: t.vh.allLocked()}
	for _, d := range saved {
		p := d.Policy
		if p.NotInForce == "" {
			var err error
			if p, err = t.checkPolicy(d.PolicyKind(), d.Policy); err != nil {
				p = d.Policy
				p.NotInForce = strings.TrimSpace(err.Error())
			}
		}
		c.sets[d.PolicyKind()] = c.sets[d.PolicyKind()].With(p)
	}
	_ = c.matchWith(func(things []policy.Thing) error {
		policy.RuleSaved(&c.sets, things, &c.spent)
		return nil
	})
	for k := range c.sets {
		for _, p := range c.sets[k] {
			if p.NotInForce != "" {
				t.vh.registry.log.Warn("a saved policy is not in force; correct what the reason names and set it again, or clear it",
					zap.String("vhost", t.vh.name), zap.Stringer("kind", policy.Kind(k)), zap.String("policy", p.Name),
					zap.String("pattern", p.Pattern), zap.String("reason", p.NotInForce))
			}
		}
	}
	t.applyLocked(c)
}

// PoliciesNotInForce counts the saved policies that are not in force.
func (t *policyTable) PoliciesNotInForce() (n int) {
	for _, k := range []policy.Kind{policy.User, policy.Operator} {
		for _, p := range t.Policies(k) {
			if p.NotInForce != "" {
				n++
			}
		}
	}
	return n
}

// checkIdle refuses an idle period below the minimum, which also holds for arguments.
func (r *Registry) checkIdle(d policy.Definition) error {
	n, set := d.Integer("auto-delete-on-idle")
	if least := r.defaults.IdleMinimumMillis; set && n < least {
		return &policy.Invalid{Problems: []string{fmt.Sprintf("%d is not a valid idle period: the minimum is %d", n, least)}}
	}
	return nil
}

// governLocked computes the settings of a queue again; called with vh.mu held. It leaves its
// messages alone: see trimAll.
func (q *Queue) governLocked(a applied) {
	q.policies = a.keep()
	q.Apply(q.vh.registry.settings.share(q.Arguments.WithPolicy(a.definition, q.declared.Args, q.Name())))
}

// trimAll drops the messages above the queues' limits, which may have become lower.
func trimAll(changed []*Queue) {
	for _, q := range changed {
		q.Trim()
	}
}

// class is the queue's type for policies' apply-to.
func (q *Queue) class() policy.Class {
	if q.Arguments.Type == queueargs.Quorum {
		return policy.QuorumQueue
	}
	return policy.ClassicQueue
}

// governLocked computes what applies to the exchange: the alternate exchange of its argument,
// otherwise of a policy, and the lower of two limits. A time to live is taken only from policies
// that apply to exchanges alone. One that applies to all means the queues, as RabbitMQ has none
// for exchanges, and must not limit what an exchange with a matching name routes to other queues.
// Called with the virtual host's mu held.
func (x *Exchange) governLocked(a applied) {
	x.policies = a
	var declared bool
	if x.alternate, declared = x.declared.Args["alternate-exchange"].(string); !declared {
		x.alternate, _ = a.definition.Text("alternate-exchange")
	}
	x.ttlMillis, x.idleMillis = queueargs.ExchangeLimits(x.vh.registry.defaults, x.declared.Args)
	for _, ruling := range a.Policies {
		if ruling != nil && ruling.ApplyTo == policy.Exchanges {
			queueargs.Bound(&x.ttlMillis, ruling.Definition, "message-ttl", -1)
		}
	}
	x.ttlMillis = min(x.ttlMillis, queueargs.MaxTTLMillis)
	if !strings.HasPrefix(x.name, "amq.") {
		queueargs.Bound(&x.idleMillis, a.definition, "auto-delete-on-idle", 0)
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

// ExchangePolicies is Queue.Policies for an exchange; ok is false if it does not exist.
func (t *exchangeTable) ExchangePolicies(name string) (user, operator string, effective policy.Definition, ok bool) {
	t.vh.mu.RLock()
	defer t.vh.mu.RUnlock()
	x, ok := t.exchanges[name]
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
