package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"curfew/broker/operate"
	"curfew/monitor/dashboard/internal/ui"
)

// Pages of policies, virtual hosts and users.
type Pages struct {
	Operations *operate.Operations
	Site       ui.Site
}

const (
	policies     = "/policies"
	newPolicy    = "/policy/new"
	deletePolicy = "/policy/delete"
	users        = "/users"
	newUser      = "/user/new"
	userPath     = "/user"
	deleteUser   = "/user/delete"
	clearPath    = "/user/permission/clear"
)

// Group has the pages and the forms.
func (p Pages) Group() ui.Group {
	return ui.Group{
		Pages: map[string]ui.Page{
			policies:     {Title: "Policies", Tab: policies, Build: p.listPolicies},
			newPolicy:    {Title: "Policy", Tab: policies, Build: p.newPolicy},
			deletePolicy: {Title: "Delete", Tab: policies, Build: p.askDeletePolicy},
			users:        {Title: "Users", Tab: users, Build: p.listUsers},
			newUser:      {Title: "New user", Tab: users, Build: p.newUser},
			userPath:     {Title: "User", Tab: users, Build: p.user},
			deleteUser:   {Title: "Delete", Tab: users, Build: p.askDeleteUser},
			clearPath:    {Title: "Clear", Tab: users, Build: p.askClear},
			vhosts:       {Title: "Virtual hosts", Tab: policies, Build: p.listVHosts},
			vhostPath:    {Title: "Virtual host", Tab: policies, Build: p.vhost},
			newVHost:     {Title: "New virtual host", Tab: policies, Build: p.newVHost},
			deleteVHost:  {Title: "Delete", Tab: policies, Build: p.askDeleteVHost},
		},
		Changes: map[string]ui.Handler{
			newPolicy: p.setPolicy, deletePolicy: p.deletePolicy,
			newUser: p.addUser, "/user/tags": p.setTags, "/user/password": p.setPassword, "/user/permission": p.setPermission, "/user/topic": p.setTopicPermission, clearPath: p.clearPermission,
			deleteUser: p.deleteUser,
			newVHost:   p.makeVHost, vhostPath: p.describeVHost, limitVHost: p.limitVHost, protectVHost: p.protectVHost, deleteVHost: p.deleteVHost,
		},
	}
}

// policyList is the content of the page of policies.
type policyList struct {
	Users, Operators       []operate.Policy
	UsersCut, OperatorsCut ui.Cut
	Sets                   bool // the user may set the first kind
	Done                   string
}

func (p Pages) listPolicies(r *http.Request, v ui.Visitor) (ui.View, error) {
	actor := v.Actor()
	page := &policyList{Sets: actor.Has(operate.RoleOf(operate.SetPolicy)), Done: map[string]string{"set": "Policy set.", "deleted": "Policy deleted."}[r.URL.Query().Get("done")]}
	var err error
	if page.Users, err = p.Operations.ListPolicies(r.Context(), actor, operate.UserPolicies); err == nil {
		page.Operators, err = p.Operations.ListPolicies(r.Context(), actor, operate.OperatorPolicies)
	}
	q := r.URL.Query()
	q.Del("done")
	page.Users, page.UsersCut = ui.CutOf(page.Users, policies, q, "page")
	page.Operators, page.OperatorsCut = ui.CutOf(page.Operators, policies, q, "operators")
	return page, err
}

// policyForm is the form that sets a policy. It first shows what the policy would do.
type policyForm struct {
	Form   *ui.Form
	VHosts []string
	Effect *operate.PolicyEffect // nil: there was no dry run yet
}

// kindOf is the kind of policies that a form or a query is about.
func kindOf(v url.Values) operate.PolicyKind {
	if v.Get("kind") == "operator" {
		return operate.OperatorPolicies
	}
	return operate.UserPolicies
}

// newPolicy is the form, filled with the policy that a query names.
func (p Pages) newPolicy(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	page := &policyForm{ui.NewForm(q, "vhost", "/", "apply-to", "queues", "priority", "0"), p.Operations.VHostNames(v.Actor()), nil}
	if q.Get("name") == "" {
		return page, nil
	}
	one, err := p.Operations.Policy(r.Context(), v.Actor(), q.Get("vhost"), kindOf(q), q.Get("name"))
	if operate.Gone(err) {
		return page, nil // the policy is new
	}
	definition, _ := json.MarshalIndent(one.Definition, "", "  ")
	for name, value := range map[string]string{"was": p.Operations.PolicyVersion(kindOf(q), &one), "pattern": one.Pattern, "apply-to": one.ApplyTo, "priority": strconv.FormatInt(one.Priority, 10), "definition": string(definition)} {
		page.Form.Values.Set(name, value)
	}
	return page, err
}

// setPolicy first shows what the policy would do, and then sets it. It replaces a policy only if that is still as the form was filled.
func (p Pages) setPolicy(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	page := &policyForm{ui.NewForm(r.PostForm), p.Operations.VHostNames(v.Actor()), nil}
	f := page.Form
	kind, vhost := kindOf(f.Values), f.Get("vhost")
	f.Need("name")
	priority, err := strconv.ParseInt(strings.TrimSpace(f.Get("priority")), 10, 32)
	if err != nil {
		f.Wrong("priority", "A priority is a whole number.")
	}
	fields := map[string]any{"pattern": f.Need("pattern"), "apply-to": f.Get("apply-to"), "priority": priority, "definition": f.Object("definition")}
	one := operate.PolicyDefinition{}
	err = nil
	if f.OK() {
		one, err = operate.ReadPolicy(kind, f.Get("name"), fields)
	}
	if err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, newPolicy, err, page)
		return
	}
	seen := p.Operations.IfPolicyStill(f.Get("was"))
	switch f.Get("do") {
	case "set":
		_, err = seen.SetPolicy(r.Context(), v.Actor(), vhost, kind, one)
	case "backlog":
		_, err = seen.SetPolicyForBacklog(r.Context(), v.Actor(), vhost, kind, one, false)
	default:
		effect, tryErr := p.Operations.TryPolicy(r.Context(), v.Actor(), vhost, kind, one)
		if page.Effect, err = &effect, tryErr; err == nil {
			p.Site.Show(w, r, http.StatusOK, v, newPolicy, page)
			return
		}
		page.Effect = nil
	}
	if errors.Is(err, operate.ErrPolicyChanged) && f.Get("was") == "" {
		f.Wrong("name", "A policy with this name already exists.")
		err = nil
	}
	if err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, newPolicy, err, page)
		return
	}
	http.Redirect(w, r, policies+"?done=set", http.StatusSeeOther)
}

// policyDeletion is the page that asks whether to delete a policy.
type policyDeletion struct {
	operate.Policy
	Form *ui.Form
}

func (p Pages) policyDeletion(r *http.Request, v ui.Visitor, values url.Values) (*policyDeletion, error) {
	one, err := p.Operations.Policy(r.Context(), v.Actor(), values.Get("vhost"), kindOf(values), values.Get("name"))
	if err != nil {
		return nil, err
	}
	return &policyDeletion{one, ui.NewForm(values)}, nil
}

func (p Pages) askDeletePolicy(r *http.Request, v ui.Visitor) (ui.View, error) {
	d, err := p.policyDeletion(r, v, r.URL.Query())
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (p Pages) deletePolicy(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	d, err := p.policyDeletion(r, v, r.PostForm)
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	if err := p.Operations.ClearPolicy(r.Context(), v.Actor(), d.VHost, kindOf(r.PostForm), d.Name); err != nil {
		d.Form.Again(p.Site, w, r, v, deletePolicy, err, d)
		return
	}
	http.Redirect(w, r, policies+"?done=deleted", http.StatusSeeOther)
}
