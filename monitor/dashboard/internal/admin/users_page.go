package admin

import (
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/access"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func (p *userList) Draw(s *ui.Info) ui.Drawing {
	return ui.Drawing{
		Top: g.Group{h.H1(g.Text("Users")), lists(s, users), ui.Done(p.Done), ui.Menu("Actions", ui.Action(newUser, "New user…"))},
		Live: h.Section(h.Class("card"), ui.Table([]string{"Name", "Tags", "Virtual hosts", "Logs in"}, g.Map(p.List, func(u access.User) g.Node {
			login := "with a password"
			if len(u.PasswordHash) == 0 {
				login = "with a certificate only"
			}
			return h.Tr(
				h.Td(ui.Link(userURL(u.Name, ""), ui.Name(u.Name))), h.Td(tags(u.Tags)),
				h.Td(ui.Names(p.Entries[u.Name], ui.Class("warn", g.Text("none: cannot log in over AMQP")))), h.Td(g.Text(login)))
		})), p.Cut.DrawIfCut("user")),
	}
}

func tags(list []string) g.Node {
	if len(list) == 0 {
		return ui.Faint("none")
	}
	return h.Span(h.Class("tags"), g.Map(list, func(tag string) g.Node { return ui.Class("tag", ui.Name(tag)) }))
}

// known are the tags that have a meaning, with what they allow.
var known = [][2]string{
	{access.Management, "the management API, for what the user may do over AMQP"}, {access.Policymaker, "policies"},
	{access.Monitoring, "this dashboard, and a look at all virtual hosts"}, {access.Administrator, "everything"}, {access.Impersonator, "publish with the user-id of another user"},
}

// tagFields are a box for each known tag, and a field for others.
func tagFields(f *ui.Form) g.Node {
	var others []string
	for _, tag := range f.Values["tag"] {
		if !slices.ContainsFunc(known, func(k [2]string) bool { return k[0] == tag }) {
			others = append(others, tag)
		}
	}
	return g.Group{
		h.FieldSet(h.Legend(g.Text("Tags: what the user may do besides AMQP")), g.Map(known, func(k [2]string) g.Node {
			return h.Label(h.Class("inline"), h.Input(h.Type("checkbox"), h.Name("tag"), h.Value(k[0]), g.If(slices.Contains(f.Values["tag"], k[0]), h.Checked())), h.Span(g.Text(k[0]+": "+k[1])))
		})),
		g.Map(others, func(tag string) g.Node { return ui.Hidden("tag", tag) }),
	}
}

func (p *userForm) Draw(s *ui.Info) ui.Drawing {
	f := p.Form
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(users, g.Text("Users"))), h.H1(g.Text("New user")),
		h.Section(h.Class("card"), s.Sheet(newUser, f, g.Group{
			f.Field("Name", "name", "", h.AutoComplete("username"), h.Required(), h.MaxLength("255")),
			f.Password("Password", "password", "new-password", "Only its hash is kept."),
			tagFields(f),
			f.Choose("Permissions in the virtual host", "vhost", "", ui.Or("none yet", p.VHosts)...),
			permissionFields(f),
		}, ui.Primary("Add the user"), ui.Link(users, g.Text("Cancel")))),
	}}
}

func permissionFields(f *ui.Form) g.Node {
	return g.Group{
		f.Field("Configure", "configure", "Declare and delete what this regular expression matches. Empty: nothing."),
		f.Field("Write", "write", "Publish to it, bind it."),
		f.Field("Read", "read", "Consume and purge it, bind to it."),
	}
}

func (p *userPage) Draw(s *ui.Info) ui.Drawing {
	return ui.Drawing{
		Top: g.Group{
			h.P(h.Class("crumbs"), ui.Link(users, g.Text("Users"))), h.H1(ui.Name(p.Name)), ui.Done(p.Done),
			ui.Menu("Actions", g.If(p.Self, ui.Faint("This is you: other tags or another password end your session.")), ui.DangerLink(ui.At(deleteUser, "name", p.Name), "Delete…")),
		},
		Live: g.Group{
			ui.Card("permissions", "Permissions", nil, p.permissions(),
				s.Sheet("/user/permission", p.Permission, g.Group{
					p.names(), p.Permission.ChooseVHost(p.VHosts), permissionFields(p.Permission),
				}, ui.Button("Set permissions"))),
			ui.Card("topics", "Topic permissions", nil, p.topics(),
				s.Sheet("/user/topic", p.Topic, g.Group{
					p.names(), p.Topic.ChooseVHost(p.VHosts),
					p.Topic.Field("Topic exchange", "exchange", "", h.Required(), h.MaxLength("255")),
					p.Topic.Field("Write", "write", "Publish with the routing keys that this regular expression matches."),
					p.Topic.Field("Read", "read", "Bind queues with these."),
				}, ui.Button("Set topic permissions"))),
			ui.Card("tagging", "Tags", nil, s.Sheet("/user/tags", p.Tagging, g.Group{p.names(), tagFields(p.Tagging)}, ui.Button("Set tags"))),
			ui.Card("password", "Password", nil, s.Sheet("/user/password", p.Password, g.Group{
				ui.Hidden("was", p.Version), h.Input(h.Name("name"), h.Value(p.Name), h.AutoComplete("username"), h.ReadOnly(), g.Attr("hidden")), // for password managers
				p.Password.Password("New password", "password", "new-password", "AMQP connections stay open."),
			}, ui.Button("Set the password"))),
		},
	}
}

// names are the hidden fields that name the user to be changed, and the version of the user that the page showed.
func (p *userPage) names() g.Node {
	return g.Group{ui.Hidden("name", p.Name), ui.Hidden("was", p.Version)}
}

// patternCell is a cell with a regular expression.
func patternCell(text string) g.Node {
	if text == "" {
		return h.Td(ui.Faint("nothing"))
	}
	return h.Td(ui.Code(format.Visible(text)))
}

func (p *userPage) permissions() g.Node {
	if len(p.Permissions) == 0 {
		return ui.Empty(g.Text("None: the user cannot log in over AMQP."))
	}
	return ui.Table([]string{"Virtual host", "Configure", "Write", "Read", ""}, g.Map(p.Permissions, func(one access.Permission) g.Node {
		return h.Tr(
			h.Td(ui.Name(one.VHost)), patternCell(one.Configure), patternCell(one.Write), patternCell(one.Read),
			h.Td(ui.Menu("Actions on permissions in "+format.Visible(one.VHost), ui.Action(ui.At(userPath, "name", p.Name, "vhost", one.VHost), "Change…"), ui.DangerLink(ui.At(clearPath, "name", p.Name, "vhost", one.VHost), "Clear…"))))
	}))
}

func (p *userPage) topics() g.Node {
	if len(p.Topics) == 0 {
		return ui.Empty(g.Text("None: the user may use every routing key at topic exchanges."))
	}
	return ui.Table([]string{"Virtual host", "Exchange", "Write", "Read", ""}, g.Map(p.Topics, func(one access.TopicPermission) g.Node {
		to := func(path string) string {
			return ui.At(path, "name", p.Name, "vhost", one.VHost, "exchange", one.Exchange)
		}
		return h.Tr(
			h.Td(ui.Name(one.VHost)), h.Td(ui.Name(one.Exchange)), patternCell(one.Write), patternCell(one.Read),
			h.Td(ui.Menu("Actions on topic permissions at "+format.Visible(one.Exchange), ui.Action(to(userPath), "Change…"), ui.DangerLink(to(clearPath), "Clear…"))))
	}))
}

func (d *userDeletion) Draw(s *ui.Info) ui.Drawing {
	warning := "The user loses all permissions, and the user's connections are closed."
	if d.Self {
		warning = "This is you: you will be logged out, and cannot log in again."
	}
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(users, g.Text("Users")), g.Text(" / "), ui.Link(userURL(d.Name, ""), ui.Name(d.Name))),
		h.H1(g.Text("Delete the user "), ui.Name(d.Name), g.Text("?")),
		h.P(g.Text(warning)),
		s.Sheet(deleteUser, d.Form, g.Group{ui.Hidden("name", d.Name)}, ui.Danger("Delete the user"), ui.Link(userURL(d.Name, ""), g.Text("Cancel"))),
	}}
}

func (c *clearing) Draw(s *ui.Info) ui.Drawing {
	title, then, where := "Clear these permissions?", "the user cannot log in to the virtual host. Open connections stay, and their requests are refused.", ui.Fact("Configure", ui.OrNone(c.Configure))
	if c.Exchange != "" {
		title, then, where = "Clear these topic permissions?", "the user may use every routing key at the exchange, if the user may use the exchange.", ui.Fact("Exchange", ui.Name(c.Exchange))
	}
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(users, g.Text("Users")), g.Text(" / "), ui.Link(userURL(c.User, ""), ui.Name(c.User))),
		h.H1(g.Text(title)),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Virtual host", ui.Name(c.VHost)), where, ui.Fact("Write", ui.OrNone(c.Write)), ui.Fact("Read", ui.OrNone(c.Read)), ui.Fact("Then", g.Text(then)))),
		s.Sheet(clearPath, c.Form, g.Group{ui.Hidden("name", c.User), ui.Hidden("vhost", c.VHost), ui.HiddenIf("exchange", c.Exchange)},
			ui.Danger("Clear them"), ui.Link(userURL(c.User, ""), g.Text("Cancel"))),
	}}
}
