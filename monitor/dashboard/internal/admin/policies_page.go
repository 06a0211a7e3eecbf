package admin

import (
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/monitor/dashboard/internal/content"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func (p *policyList) Draw(s *ui.Info) ui.Drawing {
	return ui.Drawing{
		Top: g.Group{
			h.H1(g.Text("Policies")), lists(s, policies), ui.Done(p.Done),
			ui.Menu("Actions", g.If(p.Sets, ui.Action(newPolicy, "New policy…")), g.If(s.User.Admin, ui.Action(newPolicy+"?kind=operator", "New operator policy…")),
				g.If(!p.Sets, ui.Faint("Only users with the tag policymaker or administrator can set policies."))),
		},
		Live: g.Group{
			ui.Card("users", "Policies", nil, policyTable(p.Users, "", p.Sets, "No policies. One gives every queue whose name matches a pattern a time to live, a dead-letter exchange or limits."), p.UsersCut.DrawIfCut("policy")),
			ui.Card("operators", "Operator policies", nil, policyTable(p.Operators, "operator", s.User.Admin, "No operator policies. They limit what policies and arguments can set."), p.OperatorsCut.DrawIfCut("policy")),
		},
	}
}

func policyTable(list []operate.Policy, kind string, changes bool, none string) g.Node {
	if len(list) == 0 {
		return ui.Empty(g.Text(none))
	}
	return ui.Table([]string{"Name", "Pattern", "Applies to", "#Priority", "Definition", ""}, g.Map(list, func(p operate.Policy) g.Node {
		to := func(path string) string { return ui.At(path, "kind", kind, "vhost", p.VHost, "name", p.Name) }
		return h.Tr(
			h.Td(ui.Name(p.Name), g.If(p.VHost != "/", g.Group{g.Text(" "), ui.Class("faint", ui.Name(p.VHost))}),
				g.If(p.NotInForce != "", g.Group{h.Br(), ui.Class("bad", g.Text("not in force: "), ui.Name(p.NotInForce))})),
			h.Td(ui.Code(format.Visible(p.Pattern))), h.Td(ui.Name(p.ApplyTo)), ui.Amount(g.Text(strconv.FormatInt(p.Priority, 10))), h.Td(definition(p.Definition)),
			h.Td(g.If(changes, ui.Menu("Actions on policy "+format.Visible(p.Name), ui.Action(to(newPolicy), "Change…"), ui.DangerLink(to(deletePolicy), "Delete…")))))
	}))
}

func definition(d map[string]any) g.Node {
	var lines g.Group
	for _, one := range content.Fields(d) {
		lines = append(lines, h.Div(ui.Name(one.Name), g.Text(" = "), ui.Bold(format.Visible(one.Value))))
	}
	return lines
}

func (p *policyForm) Draw(s *ui.Info) ui.Drawing {
	f := p.Form
	title, primary := "Policy", ui.Primary("Dry run…")
	if f.Get("kind") == "operator" {
		title = "Operator policy"
	}
	actions := []g.Node{primary, ui.Link(policies, g.Text("Cancel"))}
	if p.Effect != nil {
		actions = p.actions()
	}
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(policies, g.Text("Policies"))), h.H1(g.Text(title)),
		h.Section(h.Class("card"), s.Sheet(newPolicy, f, g.Group{
			ui.HiddenIf("kind", f.Get("kind")), ui.HiddenIf("was", f.Get("was")),
			f.Field("Name", "name", "", h.Required(), h.MaxLength("255")),
			f.ChooseVHost(p.VHosts),
			f.Field("Pattern", "pattern", "A regular expression for names, for example ^orders\\.eu$. It matches parts of names, too.", h.Required()),
			f.Choose("Applies to", "apply-to", "", "queues", "queues", "exchanges", "exchanges", "all", "both", "classic_queues", "classic queues", "quorum_queues", "quorum queues"),
			f.Field("Priority", "priority", "If several policies match a name, the one with the highest priority applies.", g.Attr("inputmode", "numeric")),
			f.Area("Definition", "definition", `A JSON object, for example {"message-ttl": 60000, "dead-letter-exchange": "dlx", "max-length": 100000}. Times are in ms.`, 5),
			p.effect(),
		}, actions...)),
	}}
}

// actions are the buttons after a dry run.
func (p *policyForm) actions() []g.Node {
	set := func(do, text, class string) g.Node {
		return h.Button(h.Class(class), h.Name("do"), h.Value(do), g.Text(text))
	}
	class := "primary"
	if len(p.Effect.DeadLetterQueues) > 0 {
		class = "danger"
	}
	list := []g.Node{set("set", "Set it", class)}
	if p.Effect.Earlier > 0 {
		list = append(list, set("backlog", "Set it, also for queued messages", "danger"))
	}
	return append(list, set("try", "Dry run again", ""), ui.Link(policies, g.Text("Cancel")))
}

// effect shows what the policy would do.
func (p *policyForm) effect() g.Node {
	e := p.Effect
	if e == nil {
		return nil
	}
	if e.Queues == 0 {
		return h.Div(h.Class("whole verdict good"), g.Text("It gives a time to live to none of the queues that exist now. Limits and dead-letter exchanges apply at once to all that match."))
	}
	how, dangerous := "good", len(e.DeadLetterQueues) > 0
	if dangerous {
		how = "bad"
	}
	names := g.Group{}
	for i, name := range e.Names {
		if i > 0 {
			names = append(names, g.Text(", "))
		}
		if slices.Contains(e.DeadLetterQueues, name) {
			names = append(names, ui.Class("bad", ui.Bold(format.Visible(name))))
		} else {
			names = append(names, ui.Name(name))
		}
	}
	return h.Div(h.Class("whole verdict "+how), h.Role("status"),
		h.P(g.Text("Messages in "+format.Plural(e.Queues, "queue")+" get a time to live: "), names, g.If(e.Queues > len(e.Names), g.Text(" and others")), g.Text(".")),
		g.If(dangerous, h.P(ui.Bold("Dead letters go to "), ui.Names(e.DeadLetterQueues, nil), g.Text(": they expire there like any message. Make the pattern narrower, unless that is what you want."))),
		h.P(g.Text("If it also applies to messages that are already queued, "+format.Plural(e.Earlier, "message")+" get an earlier deadline, and "+format.Number(e.Expired)+" expire at once.")))
}

func (d *policyDeletion) Draw(s *ui.Info) ui.Drawing {
	return ui.Drawing{Live: g.Group{
		ui.Crumbs(policies, "Policies", d.VHost), h.H1(g.Text("Delete the policy "), ui.Name(d.Name), g.Text("?")),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Pattern", ui.Code(format.Visible(d.Pattern))), ui.Fact("Definition", definition(d.Definition)),
			ui.Fact("Then", g.Text("the next policy that matches applies to its queues, or only their arguments do. Messages keep the deadlines that they have.")))),
		s.Sheet(deletePolicy, d.Form, g.Group{ui.HiddenIf("kind", d.Form.Get("kind")), ui.Hidden("vhost", d.VHost), ui.Hidden("name", d.Name)},
			ui.Danger("Delete the policy"), ui.Link(policies, g.Text("Cancel"))),
	}}
}
