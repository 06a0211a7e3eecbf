package admin

import (
	"context"
	"maps"
	"slices"

	"curfew/broker"
	"curfew/broker/operate"
	"curfew/broker/policy"
)

var (
	_ = operate.Group("parameter", "Set, clear and list the parameters of virtual hosts and of the broker")
	_ = operate.Group("parameter global", "Set, clear and list the parameters of the broker")
)

// ParameterName names a parameter of a virtual host; "" is any.
type ParameterName struct {
	VHost     string `json:"vhost"`
	Component string `json:"component" log:"component" hide:"command"`
	Name      string `json:"name" log:"parameter" hide:"command"`
}

// mayChange checks who may change the parameter: operator policies and limits bound those who make policies.
func (q *ParameterName) mayChange(c *operate.Call) error {
	if q.Component == policy.Operator.String() || q.Component == "vhost-limits" {
		return c.Actor.Require(operate.Administrator)
	}
	return nil
}

// ListParameters lists the parameters of virtual hosts.
var ListParameters = operate.Define(operate.Op{
	Name: "list_parameters", Title: "List the parameters of virtual hosts", Rule: operate.Rule{Role: operate.Policymaker, Looks: true},
	Routes: []string{"GET /api/parameters", "GET /api/parameters/{component}", "GET /api/parameters/{component}/{vhost}"}, One: "GET /api/parameters/{component}/{vhost}/{name}",
	Command: "parameter list",
}, func(_ context.Context, c *operate.Call, q ParameterName) (list []broker.Parameter, err error) {
	for _, vh := range c.Within() {
		for _, p := range vh.Parameters() {
			if (q.Component == "" || q.Component == p.Component) && (q.Name == "" || q.Name == p.Name) {
				list = append(list, p)
			}
		}
	}
	return list, nil
})

// Parameter is a parameter of a virtual host.
type Parameter struct {
	VHost     string `json:"vhost"`
	Component string `json:"component" log:"component" eg:"policy"`
	Name      string `json:"name" log:"parameter" eg:"ttl"`
	Value     any    `json:"value" is:"json" need:"key" eg:"'{}'" doc:"JSON, or a text"`
}

// SetParameter makes or changes a parameter.
var SetParameter = operate.Define(operate.Op{
	Name: "set_parameter", Title: "Set a parameter of a virtual host", Rule: operate.Rule{Role: operate.Policymaker}, // operator policies and limits: Administrator
	Routes: []string{"PUT /api/parameters/{component}/{vhost}/{name}"}, Command: "parameter set <component> <name> <value>",
}, func(_ context.Context, c *operate.Call, q Parameter) (none operate.None, err error) {
	name := ParameterName{q.VHost, q.Component, q.Name}
	if err = name.mayChange(c); err == nil {
		c.Created, err = c.VHost.SetParameter(q.Component, q.Name, q.Value)
	}
	return none, err
})

// ClearParameter removes a parameter. Error: operate.ErrNotFound among others.
var ClearParameter = operate.Define(operate.Op{
	Name: "clear_parameter", Title: "Remove a parameter of a virtual host", Rule: operate.Rule{Role: operate.Policymaker}, // likewise
	Routes: []string{"DELETE /api/parameters/{component}/{vhost}/{name}"}, Command: "parameter clear <component> <name>",
	Example: "  curfew parameter clear policy ttl",
}, func(_ context.Context, c *operate.Call, q ParameterName) (operate.None, error) {
	if err := q.mayChange(c); err != nil {
		return operate.None{}, err
	}
	return removed(c.VHost.ClearParameter(q.Component, q.Name))
})

// removed is the result of what removed something, if it existed.
func removed(existed bool, err error) (operate.None, error) {
	if err == nil && !existed {
		err = operate.ErrNotFound
	}
	return operate.None{}, err
}

// GlobalParameter is a parameter of the broker.
type GlobalParameter struct {
	Name  string `json:"name" log:"parameter" eg:"cluster_name"`
	Value any    `json:"value" is:"json" need:"key" eg:"shop" doc:"JSON, or a text"`
}

// GlobalName names a parameter of the broker; "" is any.
type GlobalName struct {
	Name string `json:"name" log:"parameter" hide:"command"`
}

// ListGlobalParameters lists the parameters of the broker. Saved filters are among them only for administrators: they reveal queues that others may not
// read.
var ListGlobalParameters = operate.Define(operate.Op{
	Name: "list_global_parameters", Title: "List the parameters of the broker", Rule: operate.Rule{Role: operate.Policymaker, Looks: true},
	Routes: []string{"GET /api/global-parameters"}, One: "GET /api/global-parameters/{name}", Command: "parameter global list",
}, func(_ context.Context, c *operate.Call, q GlobalName) (list []GlobalParameter, err error) {
	all := c.GlobalParameters(c.Actor)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if q.Name == "" || q.Name == name {
			list = append(list, GlobalParameter{name, all[name]})
		}
	}
	return list, nil
})

// SetGlobalParameter makes or changes a parameter of the broker.
var SetGlobalParameter = operate.Define(operate.Op{
	Name: "set_global_parameter", Title: "Set a parameter of the broker", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"PUT /api/global-parameters/{name}"}, Command: "parameter global set <name> <value>",
}, func(_ context.Context, c *operate.Call, q GlobalParameter) (none operate.None, err error) {
	c.Created, err = c.Broker.SetGlobalParameter(q.Name, q.Value)
	return none, err
})

// ClearGlobalParameter removes a parameter of the broker. Error: operate.ErrNotFound among others.
var ClearGlobalParameter = operate.Define(operate.Op{
	Name: "clear_global_parameter", Title: "Remove a parameter of the broker", Rule: operate.Rule{Role: operate.Administrator},
	Routes: []string{"DELETE /api/global-parameters/{name}"}, Command: "parameter global clear <name>", Example: "  curfew parameter global clear cluster_name",
}, func(_ context.Context, c *operate.Call, q GlobalName) (operate.None, error) {
	return removed(c.Broker.ClearGlobalParameter(q.Name))
})
