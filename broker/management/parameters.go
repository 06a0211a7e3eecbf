package management

import (
	"maps"
	"slices"

	"curfew/broker/management/rest"

	"curfew/broker"
	"curfew/broker/operate"
)

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
	return rest.NewProblem(p.Status, p.Kind, rest.Escape(text))
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
