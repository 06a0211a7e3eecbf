package topology

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

func (p *vhostList) Draw(s *ui.Info) ui.Drawing {
	return ui.Drawing{
		Top: g.Group{
			h.H1(g.Text("Virtual hosts")), ui.Lists(s, vhosts), ui.Done(p.Done),
			ui.Menu("Actions", g.If(s.User.Admin, ui.Action(newVHost, "New virtual host…")), g.If(!s.User.Admin, ui.Faint("Only users with the tag administrator can change them."))),
		},
		Live: h.Section(h.Class("card"),
			ui.Table([]string{"Name", "Description?", "#Queues", "#Ready", "#Unacked", "Limits?", "Deletion?"}, g.Map(p.List, vhostRow)), p.Cut.DrawIfCut("virtual host")),
	}
}

func vhostRow(vh operate.VHost) g.Node {
	deletion := ui.Faint("allowed")
	if vh.Protected {
		deletion = g.Text("protected")
	}
	return h.Tr(
		h.Td(ui.Link(vhostURL(vh.Name, ""), ui.Name(vh.Name))), h.Td(ui.NameOr(vh.Description)),
		ui.Amount(ui.OrFaint(vh.Queues)), ui.Amount(ui.OrFaint(vh.Ready)), ui.Amount(ui.OrFaint(vh.Unacked)),
		h.Td(ui.Names(limitsOf(&vh), ui.Faint("none"))), h.Td(deletion))
}

// limitsOf are the limits of a virtual host in words.
func limitsOf(vh *operate.VHost) (list []string) {
	for _, one := range [][2]string{{access.MaxConnections, "connection"}, {access.MaxQueues, "queue"}} {
		if n, limited := vh.Limits.Of(one[0]); limited {
			list = append(list, ui.Plural(n, one[1]))
		}
	}
	return list
}

func queueTypes(f *ui.Form) g.Node {
	return f.Choose("Default queue type", "default_queue_type", "", "", "classic", "quorum", "quorum")
}

func (p *vhostForm) Draw(s *ui.Info) ui.Drawing {
	f := p.Form
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(vhosts, g.Text("Virtual hosts"))), h.H1(g.Text("New virtual host")),
		h.Section(h.Class("card"), s.Sheet(newVHost, f, g.Group{
			f.Field("Name", "name", "", h.Required(), h.MaxLength("255")),
			f.Field("Description", "description", ""),
			queueTypes(f),
		}, ui.Primary("Create the virtual host"), ui.Link(vhosts, g.Text("Cancel")))),
	}}
}

func (p *vhostPage) Draw(s *ui.Info) ui.Drawing {
	top := g.Group{h.P(h.Class("crumbs"), ui.Link(vhosts, g.Text("Virtual hosts"))), h.H1(ui.Name(p.Name)), ui.Done(p.Done)}
	live := g.Group{ui.Card("about", "About", nil, ui.Facts(
		ui.Fact("Queues", ui.Link(ui.At("/queues", "vhost", p.Name), g.Text(ui.Plural(p.Queues, "queue")))),
		ui.Fact("Messages", g.Text(ui.Number(p.Ready)+" ready, "+ui.Number(p.Unacked)+" unacked")),
		ui.Fact("Limits", ui.Names(limitsOf(&p.VHost), ui.Faint("none"))),
		ui.Fact("Tags", ui.Names(p.Tags, ui.Faint("none"))),
		g.If(!p.Changes, ui.Fact("Description", ui.OrNone(p.Description)))))}
	if !p.Changes {
		return ui.Drawing{Top: append(top, ui.Menu("Actions", ui.Faint("Only users with the tag administrator can change it."))), Live: live}
	}
	name := ui.Hidden("name", p.Name)
	protect, to := ui.Button("Protect from deletion"), ui.Hidden("protected", "1")
	if p.Protected {
		protect, to = ui.Button("Allow deletion"), ui.Hidden("protected", "")
	}
	return ui.Drawing{
		Top: append(top, ui.Menu("Actions",
			s.Change(protectVHost, "", name, to, protect),
			g.If(!p.Protected, ui.DangerLink(ui.At(deleteVHost, "name", p.Name), "Delete…")))),
		Live: append(live,
			ui.Card("describe", "Description", nil, s.Sheet(vhostPath, p.About, g.Group{name, p.About.Field("Description", "description", ""), queueTypes(p.About)}, ui.Button("Change"))),
			ui.Card("limit", "Limits", nil, s.Sheet(limitVHost, p.Limited, g.Group{
				name, g.Map(vhostLimits, func(limit string) g.Node { return ui.Hidden("was-"+limit, p.Limited.Get("was-"+limit)) }),
				p.Limited.Field("Most connections", access.MaxConnections, "Empty: no limit. Open connections stay.", g.Attr("inputmode", "numeric")),
				p.Limited.Field("Most queues", access.MaxQueues, "Empty: no limit. Queues that exist stay.", g.Attr("inputmode", "numeric")),
			}, ui.Button("Set the limits")))),
	}
}

func (d *vhostDeletion) Draw(s *ui.Info) ui.Drawing {
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(vhosts, g.Text("Virtual hosts")), g.Text(" / "), ui.Link(vhostURL(d.Name, ""), ui.Name(d.Name))),
		h.H1(g.Text("Delete the virtual host "), ui.Name(d.Name), g.Text("?")),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Queues", g.Text(ui.Number(d.Queues)+": they are deleted.")),
			ui.Fact("Messages", g.If(d.Ready+d.Unacked > 0, h.Class("bad")), g.Text(ui.Number(d.Ready+d.Unacked)+": they are lost, and not dead-lettered.")),
			g.If(d.DeadLetters > 0, ui.Fact("Dead letters", h.Class("bad"), g.Text(ui.Number(d.DeadLetters)+": no queue has taken them yet, and they are lost, too."))),
			ui.Fact("And", g.Text("its exchanges, bindings, policies and permissions. Its connections are closed.")))),
		h.Section(h.Class("card"), s.Sheet(deleteVHost, d.Form, g.Group{ui.Hidden("name", d.Name), d.Form.Typed(d.Name)},
			ui.Danger("Delete the virtual host"), ui.Link(vhostURL(d.Name, ""), g.Text("Cancel")))),
	}}
}
