package management

import (
	"maps"
	"slices"
	"strings"

	"curfew/broker"
	"curfew/broker/policy"
)

func policyObject(vhost string, p *policy.Policy) object {
	to := p.ApplyTo
	if to == "" {
		to = policy.All
	}
	o := object{"vhost": vhost, "name": p.Name, "pattern": p.Pattern, "apply-to": to, "priority": p.Priority, "definition": object(p.Definition)}
	if p.NotInForce != "" { // RabbitMQ has nothing like it
		o["not_in_force"] = p.NotInForce
	}
	return o
}

func listPolicies(k policy.Kind) func(*request) error {
	return func(q *request) error {
		list := []object{}
		for _, vh := range q.vhosts() {
			for _, p := range vh.Policies(k) {
				list = append(list, policyObject(vh.Name(), &p))
			}
		}
		return q.list(list)
	}
}

// policy is the one the path names.
func (q *request) policy(k policy.Kind) (*broker.VHost, *policy.Policy, error) {
	vh, err := q.vhost()
	if err != nil {
		return nil, nil, err
	}
	p, ok := vh.Policy(k, q.param("policy"))
	if !ok {
		return nil, nil, errNotFound
	}
	return vh, &p, nil
}

func getPolicy(k policy.Kind) func(*request) error {
	return func(q *request) error {
		vh, p, err := q.policy(k)
		if err != nil {
			return err
		}
		return q.one(policyObject(vh.Name(), p))
	}
}

// newPolicy is the policy of the body, for the virtual host of the path.
func (q *request) newPolicy(k policy.Kind) (vh *broker.VHost, p policy.Policy, err error) {
	if vh, err = q.vhost(); err != nil {
		return nil, p, err
	}
	f, err := q.fields()
	if err != nil {
		return nil, p, err
	}
	if p, err = policy.Decode(k, q.param("policy"), f); err != nil {
		return nil, p, escaped(err)
	}
	return vh, p, nil
}

func putPolicy(k policy.Kind) func(*request) error {
	return func(q *request) error {
		vh, p, err := q.newPolicy(k)
		if err != nil {
			return err
		}
		created, err := vh.SetPolicy(k, p)
		if err != nil {
			return escaped(err)
		}
		return q.put(created)
	}
}

// escaped answers a refused policy or parameter as RabbitMQ does, which escapes
// what it repeats for HTML.
func escaped(err error) error {
	p := asProblem(err)
	text, ok := p.reason.(string)
	if !ok {
		return err
	}
	return &problem{p.status, p.kind, escapeTerm.Replace(text)}
}

func deletePolicy(k policy.Kind) func(*request) error {
	return func(q *request) error {
		vh, p, err := q.policy(k)
		if err == nil {
			_, err = vh.ClearPolicy(k, p.Name)
		}
		if err != nil {
			return err
		}
		return q.done()
	}
}

func (q *request) listGlobalParameters() error {
	list := []object{}
	all := q.api.b.GlobalParameters()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, object{"name": name, "value": all[name]})
	}
	return q.list(list)
}

// globalParameter is the value of the one the path names.
func (q *request) globalParameter() (any, error) {
	v, ok := q.api.b.GlobalParameters()[q.param("name")]
	if !ok {
		return nil, errNotFound
	}
	return v, nil
}

func (q *request) getGlobalParameter() error {
	v, err := q.globalParameter()
	if err != nil {
		return err
	}
	return q.one(object{"name": q.param("name"), "value": v})
}

func (q *request) putGlobalParameter() error {
	f, err := q.fields()
	if err == nil {
		err = f.need("value")
	}
	if err != nil {
		return err
	}
	created, err := q.api.b.SetGlobalParameter(q.param("name"), f["value"])
	if err != nil {
		return err
	}
	return q.put(created)
}

func (q *request) deleteGlobalParameter() error {
	if _, err := q.globalParameter(); err != nil {
		return err
	}
	if _, err := q.api.b.ClearGlobalParameter(q.param("name")); err != nil {
		return err
	}
	return q.done()
}

// parameters are those of the component and virtual host that the path names, ""
// for any.
func (q *request) parameters() (list []broker.Parameter) {
	for _, vh := range q.vhosts() {
		for _, p := range vh.Parameters() {
			if component := q.param("component"); component == "" || component == p.Component {
				list = append(list, p)
			}
		}
	}
	return list
}

func parameterObject(p *broker.Parameter) object {
	return object{"value": p.Value, "vhost": p.VHost, "component": p.Component, "name": p.Name}
}

func (q *request) listParameters() error {
	list := []object{}
	for _, p := range q.parameters() {
		list = append(list, parameterObject(&p))
	}
	return q.list(list)
}

func (q *request) getParameter() error {
	for _, p := range q.parameters() {
		if p.Name == q.param("name") {
			return q.one(parameterObject(&p))
		}
	}
	return errNotFound
}

// permitParameter: operator policies and limits bound those who make policies.
func (q *request) permitParameter() error {
	if component := q.param("component"); component == policy.Operator.String() || component == "vhost-limits" {
		if !q.user.is(administrator) {
			return unauthorised(refusals[administrator])
		}
	}
	return nil
}

func (q *request) putParameter() error {
	vh, err := q.vhost()
	if err == nil {
		err = q.permitParameter()
	}
	if err != nil {
		return err
	}
	f, err := q.fields()
	if err == nil {
		err = f.need("value")
	}
	if err != nil {
		return err
	}
	created, err := vh.SetParameter(q.param("component"), q.param("name"), f["value"])
	if err != nil {
		return escaped(err)
	}
	return q.put(created)
}

func (q *request) deleteParameter() error {
	vh, err := q.vhost()
	if err == nil {
		err = q.permitParameter()
	}
	if err != nil {
		return err
	}
	existed, err := vh.ClearParameter(q.param("component"), q.param("name"))
	if err != nil {
		return err
	}
	if !existed {
		return errNotFound
	}
	return q.done()
}

// escapeTerm escapes the brackets of Erlang terms, and not their quotes.
var escapeTerm = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
