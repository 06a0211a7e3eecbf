package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/policy"
)

var _ = operate.Group("policy", "Set, clear and list policies of a running Curfew")

// PolicyFilter is the virtual host of policies, "" for any, and a name, "" for any.
type PolicyFilter struct {
	VHost string `json:"vhost" hide:"page"`
	Name  string `json:"policy" hide:"command page"`
}

// PolicyRow is a policy in a list.
type PolicyRow struct {
	VHost      string            `json:"vhost" label:"Virtual host" hide:"table"`
	Name       string            `json:"name"`
	Pattern    string            `json:"pattern" is:"pattern"`
	ApplyTo    string            `json:"apply-to" label:"Applies to"`
	Priority   int64             `json:"priority"`
	Definition policy.Definition `json:"definition" table:"DEFINITION="`
	NotInForce string            `json:"not_in_force,omitempty" faint:"-"` // RabbitMQ has nothing like it
}

// PolicyRequest is a policy to be set. The broker checks what its fields have.
type PolicyRequest struct {
	VHost      string `json:"vhost" label:"Virtual host" start:"/"`
	Name       string `json:"policy" form:"name" label:"Name" need:"page" log:"policy"`
	Pattern    any    `json:"pattern" is:"pattern" need:"value" doc:"A regular expression for names, for example ^orders\\.eu$. It matches parts of names, too."`
	Definition any    `json:"definition" is:"object" need:"value" doc:"A JSON object, for example {\"message-ttl\": 60000, \"dead-letter-exchange\": \"dlx\", \"max-length\": 100000}. Times are in ms."`
	ApplyTo    any    `json:"apply-to" label:"Applies to" start:"queues" oneof:"all queues classic_queues quorum_queues streams exchanges" doc:"all, queues, classic_queues, quorum_queues, streams or exchanges; all if it is missing"`
	Priority   any    `json:"priority" is:"number" start:"0" doc:"If several policies match a name, the one with the highest priority applies."`
	Backlog    bool   `json:"retroactive" own:"" default:"true" button:"Set it, also for queued messages" doc:"Apply its message-ttl also to messages that are already queued, counted from now. No deadline becomes later."`
	DryRun     bool   `json:"dry_run" own:"" doc:"Set nothing, and count the messages that would get an earlier deadline."`
}

// fields are those that the broker reads.
func (q *PolicyRequest) fields() map[string]any {
	all := map[string]any{"pattern": q.Pattern, "definition": q.Definition}
	for name, v := range map[string]any{"apply-to": q.ApplyTo, "priority": q.Priority} {
		if v != nil {
			all[name] = v
		}
	}
	return all
}

// PolicyEffect is what a policy's time to live does to the messages that are queued already.
type PolicyEffect struct {
	broker.BacklogEffect
	// DeadLetterQueues are those of the named queues that dead letters go to. Dead letters expire there like any message.
	DeadLetterQueues []string `json:"dead_letter_queues" hide:"table"`
}

// find finds which of the named queues dead letters go to.
func (e *PolicyEffect) find(vh *broker.VHost) {
	e.Names, e.DeadLetterQueues = append([]string{}, e.Names...), []string{}
	for _, q := range deadletters.Queues(vh, nil) {
		if slices.Contains(e.Names, q.Queue) && (len(q.From) > 0 || q.Parked || policy.IsSubqueue(q.Queue)) {
			e.DeadLetterQueues = append(e.DeadLetterQueues, q.Queue)
		}
	}
	slices.Sort(e.DeadLetterQueues)
}

// Words implements Effect.
func (e *PolicyEffect) Words() (list []string, harm, more bool) {
	if e.Queues == 0 {
		return []string{"It gives a time to live to none of the queues that exist now. Limits and dead-letter exchanges apply at once to all that match."}, false, false
	}
	names := strings.Join(e.Names, ", ")
	if n := e.Queues - len(e.Names); n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	list = append(list, "Messages in these queues get a time to live: "+names+".")
	if len(e.DeadLetterQueues) > 0 {
		list = append(list, "Dead letters go to "+strings.Join(e.DeadLetterQueues, ", ")+": with this policy they expire there like any message. Make the pattern narrower, unless that is what you want.")
	}
	return append(list, fmt.Sprintf("Of the messages that are already queued, %d would get an earlier deadline, and %d would expire at once.", e.Earlier, e.Expired)), len(e.DeadLetterQueues) > 0, e.Earlier > 0
}

// PolicyName names a policy.
type PolicyName struct {
	VHost string `json:"vhost" label:"Virtual host"`
	Name  string `json:"policy" form:"name" log:"policy" eg:"ttl"`
}

// PolicyOperations are the operations on policies of one kind.
type PolicyOperations struct {
	List  operate.Typed[PolicyFilter, []PolicyRow]
	Set   operate.Typed[PolicyRequest, *PolicyEffect]
	Clear operate.Typed[PolicyName, operate.None]
}

// Policies are those of users, and OperatorPolicies those of operators, which bound them.
var (
	Policies         = policyOperations(policy.User, "policy", "policies", operate.Policymaker)
	OperatorPolicies = policyOperations(policy.Operator, "operator_policy", "operator-policies", operate.Administrator)
)

// operatorFlag is the flag of commands that chooses operator policies.
const operatorFlag = "operator"

func policyOperations(k policy.Kind, name, path string, sets operate.Role) (ops PolicyOperations) {
	noun, variant, page, title := "policy", "", "/policy", "Policies"
	empty := "No policies. One gives every queue whose name matches a pattern a time to live, a dead-letter exchange or limits."
	if k == policy.Operator {
		noun, variant, page, title, empty = "operator policy", operatorFlag, "/operator-policy", "Operator policies", "No operator policies. They limit what policies and arguments can set."
	}
	list := operate.Operation("list_" + strings.ReplaceAll(path, "-", "_"))
	row := func(vh string, p *policy.Policy) PolicyRow {
		return PolicyRow{vh, p.Name, p.Pattern, cmp.Or(p.ApplyTo, policy.All), p.Priority, p.Definition, p.NotInForce}
	}
	ops.List = operate.Define(operate.Op{
		Name: list, Noun: noun, Title: "List the " + strings.ToLower(title), Rule: operate.Rule{Role: operate.Management, Looks: true},
		Routes: []string{"GET /api/" + path + "/{vhost}", "GET /api/" + path}, One: "GET /api/" + path + "/{vhost}/{policy}", Command: "policy list", Variant: variant,
		Page: operate.Page{On: "/policies", Title: title, Tab: "/policies", Empty: empty},
	}, func(_ context.Context, c *operate.Call, q PolicyFilter) (rows []PolicyRow, err error) {
		for _, vh := range c.Within() {
			for _, p := range vh.Policies.List(k) {
				if q.Name == "" || q.Name == p.Name {
					rows = append(rows, row(vh.Name(), &p))
				}
			}
		}
		return rows, nil
	})
	ops.Set = operate.Define(operate.Op{
		Name: operate.Operation("set_" + name), Noun: noun, Title: "Set a " + noun, Rule: operate.Rule{Role: sets},
		Text:    "Its time to live also applies to messages that are queued already, unless `retroactive` is false. It counts from now on, and no deadline becomes later.",
		Routes:  []string{"PUT /api/curfew/" + path + "/{vhost}/{policy}", "PUT /api/" + path + "/{vhost}/{policy}"},
		Command: "policy set <policy> <pattern> <definition>", Variant: variant,
		Example: `  curfew policy set ttl '^orders\.(?!dead$)' '{"message-ttl":60000}' --apply-to queues
  curfew policy set ttl '^orders\.(?!dead$)' '{"message-ttl":60000}' --retroactive --dry-run`,
		Page: operate.Page{On: page + "/new", Title: "Set a " + noun, Tab: "/policies", Parent: "/policies", Up: "Policies", Rows: list, Link: "Change…", Begin: "New " + noun + "…", Button: "Set it", Done: "Policy set.", DryRun: true},
	}, func(_ context.Context, c *operate.Call, q PolicyRequest) (*PolicyEffect, error) {
		return setPolicy(c, k, &q)
	}).Replaces(func(c *operate.Call, q PolicyRequest) (*PolicyRequest, any) {
		p, exists := c.VHost.Policies.Get(k, q.Name)
		if !exists {
			return nil, nil
		}
		return &PolicyRequest{VHost: q.VHost, Name: p.Name, Pattern: p.Pattern, Definition: p.Definition, ApplyTo: p.ApplyTo, Priority: p.Priority}, p
	})
	ops.Clear = operate.Define(operate.Op{
		Name: operate.Operation("clear_" + name), Noun: noun, Title: "Remove a " + noun, Rule: operate.Rule{Role: sets},
		Routes: []string{"DELETE /api/" + path + "/{vhost}/{policy}"}, Command: "policy clear <policy>", Variant: variant,
		Page: operate.Page{On: page + "/delete", Title: "Delete the policy", Tab: "/policies", Parent: "/policies", Up: "Policies", Rows: list, Link: "Delete…", Danger: true, Done: "Policy deleted.",
			Then: "The next policy that matches applies to its queues, or only their arguments do. Messages keep the deadlines that they have."},
	}, func(_ context.Context, c *operate.Call, q PolicyName) (operate.None, error) {
		if was, exists := c.VHost.Policies.Get(k, q.Name); exists {
			c.Log(zap.String("was", operate.Plain(was.Definition)))
		}
		return removed(c.VHost.Policies.Clear(k, q.Name))
	})
	return ops
}

// ChangedPolicy is the name of the policy that a change is about, and what changed in it; "" if it is about none.
func ChangedPolicy(c operate.Change) string {
	name, _ := c.Values["policy"].(string)
	var was, is map[string]json.RawMessage
	for key, definition := range map[string]*map[string]json.RawMessage{"was": &was, "to": &is} {
		text, _ := c.Values[key].(string)
		_ = json.Unmarshal([]byte(text), definition) // there is none where nothing was or is
	}
	all := map[string]json.RawMessage{}
	maps.Copy(all, was)
	maps.Copy(all, is)
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch before, after := was[key], is[key]; {
		case before == nil:
			parts = append(parts, key+" "+string(after))
		case after == nil:
			parts = append(parts, key+" "+string(before)+" → none")
		case !bytes.Equal(before, after):
			parts = append(parts, fmt.Sprintf("%s %s → %s", key, before, after))
		}
	}
	if len(parts) > 0 {
		name += " (" + strings.Join(parts, ", ") + ")"
	}
	return name
}

// logPolicy keeps what a policy is before it changes, and what it will be: the definitions, with what else differs.
func logPolicy(c *operate.Call, k policy.Kind, to *policy.Policy) {
	is, old := policy.Definition{}, policy.Definition{} // a policy's may be nil
	maps.Copy(is, to.Definition)
	if was, exists := c.VHost.Policies.Get(k, to.Name); exists {
		maps.Copy(old, was.Definition)
		for key, values := range map[string][2]any{
			"pattern": {was.Pattern, to.Pattern}, "priority": {was.Priority, to.Priority}, "apply-to": {cmp.Or(was.ApplyTo, policy.All), cmp.Or(to.ApplyTo, policy.All)},
		} {
			if values[0] != values[1] {
				old[key], is[key] = values[0], values[1]
			}
		}
		c.Log(zap.String("was", operate.Plain(old)))
	}
	c.Log(zap.String("to", operate.Plain(is)))
}

// setPolicy sets a policy, or tries to. It returns nil if that says nothing about queued messages.
func setPolicy(c *operate.Call, k policy.Kind, q *PolicyRequest) (*PolicyEffect, error) {
	p, err := policy.Decode(k, q.Name, q.fields())
	if err != nil {
		return nil, err
	}
	if !q.DryRun {
		logPolicy(c, k, &p)
	}
	effect := &PolicyEffect{}
	switch {
	case q.DryRun:
		effect.BacklogEffect, err = c.VHost.Policies.Preview(k, p)
	case q.Backlog:
		c.Created, effect.BacklogEffect, err = c.VHost.Policies.SetForBacklog(k, p)
		c.Log(zap.Int("messages", effect.Earlier))
		c.Log(zap.Int("expired", effect.Expired))
	default:
		c.Created, err = c.VHost.Policies.Set(k, p)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	effect.find(c.VHost)
	return effect, nil
}
