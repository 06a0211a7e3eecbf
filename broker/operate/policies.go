package operate

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/policy"
)

// setPolicy and clearPolicy are the operations on policies of a kind.
var (
	setPolicy   = map[policy.Kind]Operation{policy.User: SetPolicy, policy.Operator: SetOperatorPolicy}
	clearPolicy = map[policy.Kind]Operation{policy.User: ClearPolicy, policy.Operator: ClearOperatorPolicy}
)

// IfPolicyStill returns the same operations, which fail with ErrPolicyChanged unless the policy that they replace is the one that somebody saw,
// at a version that PolicyVersion returned.
func (o Settings) IfPolicyStill(version string) Settings { return Settings{o.Access, &version} }

// PolicyVersion returns a version that differs between policies and changes with a policy. It means nothing after a restart.
func (o Settings) PolicyVersion(k policy.Kind, p *Policy) string {
	return o.version(k, p.VHost, p.Policy)
}

// replace sets a policy. If only the one that somebody saw may be replaced, and the policy has changed since, it fails.
func (o Settings) replace(vh *broker.VHost, k policy.Kind, name string, set func() error) error {
	if o.seen == nil {
		return set()
	}
	o.policies.Lock()
	defer o.policies.Unlock()
	if p, exists := vh.Policies.Get(k, name); exists && o.PolicyVersion(k, &Policy{vh.Name(), p}) != *o.seen {
		return ErrPolicyChanged
	}
	return set()
}

// SetPolicy makes or changes a policy.
func (o Settings) SetPolicy(_ context.Context, a Actor, vhost string, k policy.Kind, p policy.Policy) (created bool, err error) {
	vh, err := o.vhost(&a, setPolicy[k], vhost)
	if err == nil {
		err = o.replace(vh, k, p.Name, func() (err error) { created, err = vh.Policies.Set(k, p); return err })
	}
	o.Record(a, setPolicy[k], QueueName{VHost: vhost}, err, zap.String("policy", p.Name))
	return created, err
}

// PolicyEffect is what a policy's time to live does to the messages that are queued already.
type PolicyEffect struct {
	broker.BacklogEffect
	// DeadLetterQueues are those of the named queues that dead letters go to. Dead letters expire there like any message.
	DeadLetterQueues []string `json:"dead_letter_queues"`
}

// find finds which of the named queues dead letters go to.
func (e *PolicyEffect) find(vh *broker.VHost) {
	e.Names, e.DeadLetterQueues = append([]string{}, e.Names...), []string{}
	for _, q := range deadletters.Queues(vh) {
		if slices.Contains(e.Names, q.Queue) && (len(q.From) > 0 || q.Parked || broker.IsSubqueue(q.Queue)) {
			e.DeadLetterQueues = append(e.DeadLetterQueues, q.Queue)
		}
	}
	slices.Sort(e.DeadLetterQueues)
}

// SetPolicyForBacklog is SetPolicy, but its time to live also applies to the messages that are queued already. With dryRun it only returns how
// many of them would get an earlier deadline.
func (o Settings) SetPolicyForBacklog(_ context.Context, a Actor, vhost string, k policy.Kind, p policy.Policy, dryRun bool) (effect PolicyEffect, err error) {
	vh, err := o.vhost(&a, setPolicy[k], vhost)
	if err == nil && dryRun {
		if effect.BacklogEffect, err = vh.Policies.Preview(k, p); err == nil {
			effect.find(vh)
		}
		return effect, err
	}
	if err == nil {
		err = o.replace(vh, k, p.Name, func() (err error) { _, effect.BacklogEffect, err = vh.Policies.SetForBacklog(k, p); return err })
	}
	if err == nil {
		effect.find(vh)
	}
	o.Record(a, setPolicy[k], QueueName{VHost: vhost}, err, zap.String("policy", p.Name), zap.Int("messages", effect.Earlier), zap.Int("expired", effect.Expired))
	return effect, err
}

// ClearPolicy removes a policy. Error: ErrNotFound among others.
func (o Settings) ClearPolicy(_ context.Context, a Actor, vhost string, k policy.Kind, name string) error {
	vh, err := o.vhost(&a, clearPolicy[k], vhost)
	var existed bool
	if err == nil {
		if existed, err = vh.Policies.Clear(k, name); err == nil && !existed {
			err = ErrNotFound
		}
	}
	o.Record(a, clearPolicy[k], QueueName{VHost: vhost}, err, zap.String("policy", name))
	return err
}

// ParameterName names a parameter of a virtual host.
type ParameterName struct{ VHost, Component, Name string }

// ofOperators reports whether only administrators may set the parameter: operator policies and limits bound those who make policies.
func (p *ParameterName) ofOperators() bool {
	return p.Component == policy.Operator.String() || p.Component == "vhost-limits"
}

// SetParameter makes or changes a parameter.
func (o Settings) SetParameter(_ context.Context, a Actor, at ParameterName, value any) (created bool, err error) {
	vh, err := o.parameters(&a, SetParameter, &at)
	if err == nil {
		created, err = vh.SetParameter(at.Component, at.Name, value)
	}
	o.Record(a, SetParameter, QueueName{VHost: at.VHost}, err, zap.String("component", at.Component), zap.String("parameter", at.Name))
	return created, err
}

// ClearParameter removes a parameter. Error: ErrNotFound among others.
func (o Settings) ClearParameter(_ context.Context, a Actor, at ParameterName) error {
	vh, err := o.parameters(&a, ClearParameter, &at)
	var existed bool
	if err == nil {
		if existed, err = vh.ClearParameter(at.Component, at.Name); err == nil && !existed {
			err = ErrNotFound
		}
	}
	o.Record(a, ClearParameter, QueueName{VHost: at.VHost}, err, zap.String("component", at.Component), zap.String("parameter", at.Name))
	return err
}

func (o Settings) parameters(a *Actor, op Operation, at *ParameterName) (*broker.VHost, error) {
	vh, err := o.vhost(a, op, at.VHost)
	if err == nil && at.ofOperators() && !a.Has(Administrator) {
		err = &MissingRole{Administrator}
	}
	return vh, err
}

// SetGlobalParameter makes or changes a parameter of the broker.
func (o Settings) SetGlobalParameter(_ context.Context, a Actor, name string, value any) (created bool, err error) {
	if err = o.permit(&a, SetGlobalParameter, ""); err == nil {
		created, err = o.Broker.SetGlobalParameter(name, value)
	}
	o.Record(a, SetGlobalParameter, QueueName{}, err, zap.String("parameter", name))
	return created, err
}

// ClearGlobalParameter removes a parameter of the broker. Error: ErrNotFound among others.
func (o Settings) ClearGlobalParameter(_ context.Context, a Actor, name string) (err error) {
	var existed bool
	if err = o.permit(&a, ClearGlobalParameter, ""); err == nil {
		if existed, err = o.Broker.ClearGlobalParameter(name); err == nil && !existed {
			err = ErrNotFound
		}
	}
	o.Record(a, ClearGlobalParameter, QueueName{}, err, zap.String("parameter", name))
	return err
}

// Types of package policy, for faces.
type (
	// PolicyKind separates policies of users from those of operators.
	PolicyKind = policy.Kind
	// PolicyDefinition is a policy without its virtual host.
	PolicyDefinition = policy.Policy
)

// The kinds of policies: those of users, and those of operators, which bound them.
const (
	UserPolicies     = policy.User
	OperatorPolicies = policy.Operator
)

// Policy is a policy of a virtual host.
type Policy struct {
	VHost string
	policy.Policy
}

// ReadPolicy reads a policy from the fields that the API has. The error says what is wrong.
func ReadPolicy(k PolicyKind, name string, fields map[string]any) (PolicyDefinition, error) {
	return policy.Decode(k, name, fields)
}

// ListPolicies lists the policies of a kind in the virtual hosts that the actor may look into.
func (o Settings) ListPolicies(_ context.Context, a Actor, k PolicyKind) (list []Policy, err error) {
	if err := o.permit(&a, ListPolicies, ""); err != nil {
		return nil, err
	}
	for _, vh := range o.VHosts(a) {
		for _, p := range vh.Policies.List(k) {
			list = append(list, Policy{vh.Name(), p})
		}
	}
	return list, nil
}

// Policy returns one policy. Error: ErrNotFound among others.
func (o Settings) Policy(_ context.Context, a Actor, vhost string, k PolicyKind, name string) (Policy, error) {
	vh, err := o.vhost(&a, ListPolicies, vhost)
	if err != nil {
		return Policy{}, err
	}
	p, ok := vh.Policies.Get(k, name)
	if !ok {
		return Policy{}, ErrNotFound
	}
	return Policy{vh.Name(), p}, nil
}

// TryPolicy returns what SetPolicyForBacklog would do, and changes nothing.
func (o Settings) TryPolicy(ctx context.Context, a Actor, vhost string, k PolicyKind, p PolicyDefinition) (PolicyEffect, error) {
	return o.SetPolicyForBacklog(ctx, a, vhost, k, p, true)
}
