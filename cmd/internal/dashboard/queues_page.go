package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/cmd/internal/dashboard/internal/topology"
	"curfew/cmd/internal/dashboard/internal/ui"
)

func (l *queuesPage) Draw(*ui.Info) ui.Drawing {
	return ui.Drawing{Top: g.Group{h.H1(g.Text("Queues")), g.If(l.MayChange, ui.Menu("Actions", ui.Action("/queue/new", "New queue…"), ui.Action("/publish", "Publish…"))), l.form()}, Live: h.Section(h.Class("card"), l.list())}
}

func (l *queuesPage) form() g.Node {
	sorts := []string{"risk", "what is worst"}
	for _, c := range sortable {
		sorts = append(sorts, c.Key, c.Name)
	}
	return ui.Search("/queues",
		l.Form.Field("Name contains", "q", "", h.Type("search"), h.MaxLength("256")),
		g.If(len(l.VHosts) > 1, l.Form.Choose("Virtual host", "vhost", "", ui.Or("all", l.VHosts)...)),
		l.Form.Choose("Purpose", "purpose", "", ui.Or("all", deadline.Purposes)...),
		l.Form.Choose("Sorted by", "sort", "", sorts...),
		g.If(l.Form.Get("desc") != "", g.Group{ui.Hidden("desc", l.Form.Get("desc")), ui.Hidden("of", l.Sort)}), // the direction is kept, unless another column is chosen
		ui.Button("Filter"))
}

func (l *queuesPage) list() g.Node {
	switch {
	case l.All == 0:
		return ui.Empty(g.Text("There are no queues yet. Connect a client to this broker and declare a queue: it appears here at once. Or run "),
			ui.Code("curfew demo --against"), g.Text(" with this address, which adds examples."))
	case len(l.Rows) == 0:
		return ui.Empty(g.Text("None of "+ui.Plural(l.All, "queue")+" matches. "), ui.Link("/queues", g.Text("Show all")))
	}
	more := []string{"#In /s", "#Out /s", "Last hour", "Dead letters to"}
	var names []string
	for _, c := range l.Columns {
		names = append(names, c.Name)
	}
	names = append(names, more...)
	return g.Group{
		h.Div(h.Class("scroll"), h.Table(
			h.THead(h.Tr(g.Map(l.Columns, columnHeading), g.Map(more, ui.Heading))),
			h.TBody(ui.Labelled(names, g.Map(l.Rows, queueLine))))),
		l.Cut.Draw("queue"),
	}
}

func columnHeading(c column) g.Node {
	return h.Th(h.Scope("col"), g.If(c.Number, h.Class("number")), g.If(c.Sorted != "", h.Aria("sort", c.Sorted)), ui.Link(c.URL, g.Text(c.Name)))
}

func queueLine(q queueRow) g.Node {
	return h.Tr(
		h.Td(h.Class("name"), ui.QueueLink(ui.QueueURL(q.VHost, q.Name), q.VHost, q.Name), g.Iff(q.Wrong.In != nil, func() g.Node {
			return g.Group{g.Text(" "), ui.Link("/incidents#incident-"+q.Wrong.In.ID, ui.Severity(string(q.Wrong.Level)))}
		})),
		h.Td(h.Span(h.Class("tag"), g.Text(q.Queue.Purpose.String()))),
		ui.Amount(g.Text(ui.Number(q.Ready))), ui.Amount(g.Text(ui.Number(q.Unacked))), h.Td(h.Class("clients"), ui.OrFaint(q.Consumers), topology.Clients(q.Holders)), ui.Amount(q.oldest()),
		ui.Amount(ui.Deadlines(q.Forecast)), ui.Amount(ui.AtRisk(q.Forecast)), ui.Amount(ui.Lost(q.Losses)),
		ui.Amount(ui.Rate(q.In)), ui.Amount(ui.Rate(q.Out)),
		h.Td(h.Class("trend"), ui.Sparkline(q.Depths, "depth in the last hour")),
		h.Td(q.deadLetters()))
}

// oldest is how long the oldest message has been there.
func (q queueRow) oldest() g.Node {
	if q.OldestAge == 0 {
		return ui.Faint("–")
	}
	return g.Text(ui.Span(q.OldestAge))
}

// deadLetters shows where dead letters go, or that they are dropped.
func (q queueRow) deadLetters() g.Node {
	switch {
	case q.DeadLetters:
		return ui.Name(deadLettersTo(q.Queue))
	case q.Forecast.AtRisk > 0:
		return ui.Class("warn", g.Text("nowhere: they are dropped"))
	}
	return ui.Faint("nowhere")
}
