package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"curfew/broker/access"
	"curfew/broker/internal/catalog"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// Components of a virtual host's parameters (RabbitMQ: Parameters and Policies).
const (
	operatorPolicies = "operator_policy"
	vhostLimits      = "vhost-limits"
)

// Parameter is one parameter of a virtual host. Curfew has those of operator
// policies and of the virtual host's limits.
type Parameter struct {
	Value     any    `json:"value"` // JSON
	VHost     string `json:"vhost"`
	Component string `json:"component"`
	Name      string `json:"name"`
}

// Parameters lists the parameters by component and name.
func (vh *VHost) Parameters() []Parameter {
	list := []Parameter{}
	for _, p := range vh.Policies.List(policy.Operator) {
		list = append(list, Parameter{VHost: vh.Name(), Component: operatorPolicies, Name: p.Name, Value: map[string]any{
			"pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition,
		}})
	}
	if limits := vh.Limits(); len(limits) > 0 {
		list = append(list, Parameter{VHost: vh.Name(), Component: vhostLimits, Name: "limits", Value: limits})
	}
	return list
}

// ErrPolicyParameter means that Policies.Set must be used.
var ErrPolicyParameter = errors.New("policies may not be set using this method")

// SetParameter makes or replaces a parameter; value has the form that policy.ParseJSON
// returns. Errors: *policy.Invalid, access.ErrInvalid, ErrPolicyParameter.
func (vh *VHost) SetParameter(component, name string, value any) (created bool, err error) {
	switch component {
	case policy.User.String():
		return false, ErrPolicyParameter
	case operatorPolicies:
		fields, _ := value.(map[string]any)
		p, err := policy.Decode(policy.Operator, name, fields)
		if err != nil {
			return false, err
		}
		return vh.Policies.Set(policy.Operator, p)
	case vhostLimits:
		created = len(vh.Limits()) == 0
		return created, vh.setLimitsParameter(name, value)
	}
	return false, &policy.Invalid{Problems: []string{"component " + component + " not found"}}
}

func (vh *VHost) setLimitsParameter(name string, value any) error {
	if name != "limits" {
		return fmt.Errorf("%w: a virtual host's limits are named limits, not %q", access.ErrInvalid, name)
	}
	text, err := json.Marshal(value)
	var limits access.Limits
	if err == nil {
		err = json.Unmarshal(text, &limits)
	}
	if err != nil {
		return fmt.Errorf("%w: limits of virtual host '%s': %w", access.ErrInvalid, vh.Name(), err)
	}
	return vh.SetLimits(limits)
}

// ClearParameter removes a parameter; false: there is none.
func (vh *VHost) ClearParameter(component, name string) (existed bool, err error) {
	switch {
	case component == operatorPolicies:
		return vh.Policies.Clear(policy.Operator, name)
	case component == vhostLimits && name == "limits" && len(vh.Limits()) > 0:
		return true, vh.SetLimits(nil)
	}
	return false, nil
}

// globalParameters are JSON values that mean nothing to the broker (RabbitMQ: Global Parameters).
type globalParameters struct {
	catalog *catalog.Catalog
	admin   *sync.Mutex // held over a change until it is saved

	mu     sync.RWMutex   // leaf
	values map[string]any // its values are never changed in place
}

// add adds values that are saved.
func (g *globalParameters) add(values map[string]any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.Copy(g.values, values)
}

// SetGlobalParameter stores a JSON value, as policy.ParseJSON returns it, under a name. The
// broker does not use it (RabbitMQ: Global Parameters). The caller must not change the value
// afterwards.
func (g *globalParameters) SetGlobalParameter(name string, value any) (created bool, err error) {
	value = policy.Whole(value)
	existed, err := g.change(name, catalog.GlobalDefinition(name, value), func() { g.values[name] = value })
	return !existed && err == nil, err
}

// ClearGlobalParameter removes a parameter; false: none has that name.
func (g *globalParameters) ClearGlobalParameter(name string) (existed bool, err error) {
	return g.change(name, store.Definition{Key: catalog.Key(catalog.GlobalKind, name)}, func() { delete(g.values, name) })
}

// GlobalParameters returns the parameters by name.
func (g *globalParameters) GlobalParameters() map[string]any {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return maps.Clone(g.values)
}

// change saves a change and then applies it, and reports whether a parameter of that name
// existed.
func (g *globalParameters) change(name string, now store.Definition, change func()) (existed bool, err error) {
	g.admin.Lock()
	defer g.admin.Unlock()
	was := store.Definition{Key: now.Key}
	old, existed := g.values[name] // nobody else writes it
	if existed {
		was = catalog.GlobalDefinition(name, old)
	} else if now.Value == nil {
		return false, nil
	}
	if err := g.catalog.SaveFirst([]store.Definition{now}, []store.Definition{was}); err != nil {
		return existed, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	return existed, nil
}
