package management

import (
	"maps"
	"slices"
	"strings"

	"curfew/broker/management/rest"

	"curfew/broker"
	"curfew/broker/operate"
	"curfew/broker/policy"
)

func policyObject(p *operate.Policy) object {
	to := p.ApplyTo
	if to == "" {
		to = policy.All
	}
	o := object{"vhost": p.VHost, "name": p.Name, "pattern": p.Pattern, "apply-to": to, "priority": p.Priority, "definition": object(p.Definition)}
	if p.NotInForce != "" { // RabbitMQ has nothing like it
		o["not_in_force"] = p.NotInForce
	}
	return o
}

func listPolicies(k policy.Kind) func(*request) error {
	return func(r *request) error {
		all, err := r.Operations.ListPolicies(r.Context(), r.Actor, k)
		if err != nil {
			return err
		}
		list := []object{}
		for i := range all {
			if vhost := r.Param("vhost"); vhost == "" || vhost == all[i].VHost {
				list = append(list, policyObject(&all[i]))
			}
		}
		return r.List(list)
	}
}

func getPolicy(k policy.Kind) func(*request) error {
	return func(r *request) error {
		p, err := r.Operations.Policy(r.Context(), r.Actor, r.Param("vhost"), k, r.Param("policy"))
		if err != nil {
			return err
		}
		return r.One(policyObject(&p))
	}
}

// readPolicy reads the policy from the body.
func readPolicy(r *request, k policy.Kind) (p policy.Policy, err error) {
	f, err := r.Fields()
	if err != nil {
		return p, err
	}
	p, err = policy.Decode(k, r.Param("policy"), f)
	return p, escaped(err)
}

func putPolicy(k policy.Kind) func(*request) error {
	return func(r *request) error {
		p, err := readPolicy(r, k)
		if err != nil {
			return err
		}
		created, err := r.Operations.SetPolicy(r.Context(), r.Actor, r.Param("vhost"), k, p)
		return r.Put(created, escaped(err))
	}
}

// putPolicyForBacklog sets a policy whose time to live also applies to messages that are queued already. With dry_run=true it only answers how
// many of them would get an earlier deadline. RabbitMQ has nothing like it.
func putPolicyForBacklog(k policy.Kind) func(*request) error {
	return func(r *request) error {
		p, err := readPolicy(r, k)
		if err != nil {
			return err
		}
		return r.Result(r.Operations.SetPolicyForBacklog(r.Context(), r.Actor, r.Param("vhost"), k, p, r.Flag("dry_run")))
	}
}

// policyRequest is the body of a request to set a policy.
type policyRequest struct {
	Pattern    string `json:"pattern"`    // regular expression for the names that it applies to
	Definition object `json:"definition"` // its keys, such as message-ttl
	Priority   int64  `json:"priority"`   // of several policies that match, the one with the highest applies
	ApplyTo    string `json:"apply-to"`   // all, queues, classic_queues, quorum_queues, streams or exchanges; all if it is missing
}

func backlogDoc(k policy.Kind) rest.Doc {
	id, kind := "setPolicyForBacklog", "a policy"
	if k == policy.Operator {
		id, kind = "setOperatorPolicyForBacklog", "an operator policy"
	}
	return rest.Doc{
		ID: id, Summary: "Set " + kind + " whose time to live also applies to messages queued already",
		Text:  "The time to live counts from now on, and no deadline becomes later. RabbitMQ's own path sets a policy for messages that arrive later.",
		Query: []rest.Parameter{{Name: "dry_run", Text: "Set nothing, and count the messages that would get an earlier deadline.", Value: false}},
		Body:  policyRequest{}, Answer: operate.PolicyEffect{},
	}
}

// escaped answers a refused policy or parameter as RabbitMQ does, which escapes quoted input for
// HTML.
func escaped(err error) error {
	if err == nil {
		return nil
	}
	p := rest.AsProblem(err)
	text, ok := p.Reason.(string)
	if !ok {
		return err
	}
	return rest.NewProblem(p.Status, p.Kind, escapeTerm.Replace(text))
}

func deletePolicy(k policy.Kind) func(*request) error {
	return func(r *request) error {
		return r.Done(r.Operations.ClearPolicy(r.Context(), r.Actor, r.Param("vhost"), k, r.Param("policy")))
	}
}

func listGlobalParameters(r *request) error {
	list := []object{}
	all, err := r.Operations.GlobalParameters(r.Context(), r.Actor)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, object{"name": name, "value": all[name]})
	}
	return r.List(list)
}

// namedGlobalParameter returns the value of the parameter in the path.
func namedGlobalParameter(r *request) (any, error) {
	all, err := r.Operations.GlobalParameters(r.Context(), r.Actor)
	if err != nil {
		return nil, err
	}
	v, ok := all[r.Param("name")]
	if !ok {
		return nil, rest.ErrNotFound
	}
	return v, nil
}

func getGlobalParameter(r *request) error {
	v, err := namedGlobalParameter(r)
	if err != nil {
		return err
	}
	return r.One(object{"name": r.Param("name"), "value": v})
}

func putGlobalParameter(r *request) error {
	f, err := r.Fields("value")
	if err != nil {
		return err
	}
	return r.Put(r.Operations.SetGlobalParameter(r.Context(), r.Actor, r.Param("name"), f["value"]))
}

func deleteGlobalParameter(r *request) error {
	return r.Done(r.Operations.ClearGlobalParameter(r.Context(), r.Actor, r.Param("name")))
}

// namedParameters returns the parameters of the component and virtual host in the path, "" for
// any.
func namedParameters(r *request) (list []broker.Parameter) {
	for _, vh := range r.vhosts() {
		for _, p := range vh.Parameters() {
			if component := r.Param("component"); component == "" || component == p.Component {
				list = append(list, p)
			}
		}
	}
	return list
}

func parameterObject(p *broker.Parameter) object {
	return object{"value": p.Value, "vhost": p.VHost, "component": p.Component, "name": p.Name}
}

func listParameters(r *request) error {
	list := []object{}
	for _, p := range namedParameters(r) {
		list = append(list, parameterObject(&p))
	}
	return r.List(list)
}

func getParameter(r *request) error {
	for _, p := range namedParameters(r) {
		if p.Name == r.Param("name") {
			return r.One(parameterObject(&p))
		}
	}
	return rest.ErrNotFound
}

// parameterName returns the name of the parameter in the path.
func parameterName(r *request) operate.ParameterName {
	return operate.ParameterName{VHost: r.Param("vhost"), Component: r.Param("component"), Name: r.Param("name")}
}

func putParameter(r *request) error {
	f, err := r.Fields("value")
	if err != nil {
		return err
	}
	created, err := r.Operations.SetParameter(r.Context(), r.Actor, parameterName(r), f["value"])
	return r.Put(created, escaped(err))
}

func deleteParameter(r *request) error {
	return r.Done(r.Operations.ClearParameter(r.Context(), r.Actor, parameterName(r)))
}

// escapeTerm escapes the brackets of Erlang terms, but not their quotes.
var escapeTerm = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
