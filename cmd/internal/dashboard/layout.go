package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
)

// layout is the document around a page's parts.
func (d *Dashboard) layout(s *ui.Info, p ui.Drawing) g.Node {
	menu := g.Map(d.entries(&s.User), func(e entry) g.Node {
		return h.A(ui.Href(e.path), g.If(s.Tab == e.path, h.Aria("current", "page")), g.Text(e.text))
	})
	return h.Doctype(h.HTML(h.Lang("en"), g.If(s.Theme != themes[0], h.Data("theme", s.Theme)),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.TitleEl(g.Text(s.Title+" · "+ui.Visible(s.Instance)+" · Curfew")),
			h.Link(h.Rel("stylesheet"), ui.Href(d.assets.URLs["style.css"])),
			h.Link(h.Rel("icon"), h.Type("image/svg+xml"), ui.Href(d.assets.URLs["icon.svg"])),
			h.Script(h.Src(d.assets.URLs["live.js"]), h.Defer()),
			h.Script(h.Src(d.assets.URLs["times.js"]), h.Defer()),
			h.Script(h.Src(d.assets.URLs["copy.js"]), h.Defer()),
			h.Script(h.Src(d.assets.URLs["fleet.js"]), h.Defer()),
			h.Script(h.Src(d.assets.URLs["palette.js"]), h.Defer()),
			g.If(p.Charts, g.Group{
				h.Link(h.Rel("stylesheet"), ui.Href(d.assets.URLs["uPlot.css"])),
				h.Script(h.Src(d.assets.URLs["uPlot.js"]), h.Defer()), h.Script(h.Src(d.assets.URLs["chart.js"]), h.Defer()),
			}),
		),
		h.Body(
			h.A(h.Class("skip"), ui.Href("#content"), g.Text("Skip to content")),
			h.Header(
				h.A(h.Class("brand"), ui.Href("/"), h.Img(h.Src(d.assets.URLs["icon.svg"]), h.Alt(""), h.Width("24"), h.Height("24")), g.Text("Curfew")),
				g.If(s.User.Name != "", g.Group{h.Nav(h.Aria("label", "Pages"), ui.Spaced(menu...)), who(s)}),
			),
			h.Main(h.ID("content"), h.TabIndex("-1"),
				ui.Done(s.Said), p.Top,
				h.Div(h.ID("live"), g.If(s.Live != "", h.Data("live", s.Live)), p.Live),
				p.Bottom,
			),
			h.Footer(
				h.Span(g.Text("Curfew "+s.Version+" · "), ui.Name(s.Instance)),
				h.Button(h.Type("button"), h.ID("times"), h.Class("quiet"), h.Aria("pressed", "false"), g.Attr("hidden"), g.Text("Local times")),
				themeSwitch(s)),
			g.If(s.User.Name != "", palette()),
		),
	))
}

// entry is an entry of the menu.
type entry struct{ path, text string }

// entries are the pages that the menu has for a user.
func (d *Dashboard) entries(u *ui.User) (list []entry) {
	broker := d.Operations != nil
	for _, e := range []struct {
		entry
		is bool
	}{
		{entry{"/", "Overview"}, true}, {entry{"/rabbitmq", "RabbitMQ"}, d.RabbitMQ != nil},
		{entry{"/queues", "Queues"}, broker}, {entry{"/exchanges", "Exchanges"}, broker}, {entry{"/connections", "Connections"}, broker},
		{entry{"/dead-letters", "Dead letters"}, broker}, {entry{"/incidents", "Incidents"}, true}, {entry{"/audit", "Audit"}, true},
		{entry{"/policies", "Policies"}, broker}, {entry{"/users", "Users"}, broker && u.Admin},
	} {
		if e.is {
			list = append(list, e.entry)
		}
	}
	return list
}

// who shows the user's name and the button to log out.
func who(s *ui.Info) g.Node {
	pause := h.Button(h.Type("button"), h.ID("pause"), h.Class("quiet"), h.Aria("pressed", "false"), g.Attr("hidden"), h.Title("Stop updating this page. Nothing else is paused."), g.Text("Pause updates"))
	out := h.Form(h.Method("post"), h.Action("/logout"), h.Button(h.Class("quiet"), g.Text("Log out")))
	find := h.Button(h.Type("button"), h.ID("goto"), h.Class("quiet"), h.Aria("keyshortcuts", "/"), h.Title("Search: go to a queue, an exchange or a page"), g.Attr("hidden"), g.El("kbd", g.Text("/")))
	return h.Div(h.Class("who"),
		find,
		g.If(s.Live != "", pause),
		h.Span(h.Class("user"), h.Title("logged in as"), ui.Name(s.User.Name)),
		g.If(!s.Basic, out))
}
