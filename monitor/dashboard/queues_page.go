package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor"
	"curfew/monitor/dashboard/internal/format"
)

func (l *queuesPage) draw(*pageInfo) drawing {
	return drawing{top: g.Group{h.H1(g.Text("Queues")), l.form()}, live: h.Section(h.Class("card"), l.list())}
}

func (l *queuesPage) form() g.Node {
	direction := ""
	if l.Descending {
		direction = "1"
	}
	return search("/queues",
		h.Label(g.Text("Name contains"), h.Input(h.Type("search"), h.Name("q"), h.Value(l.Filter), h.MaxLength("256"))),
		g.If(len(l.VHosts) > 1, choose("vhost", "Virtual host", "all", l.VHosts, l.VHost)),
		hidden("sort", l.Sort), hiddenIf("desc", direction),
		button("Filter"))
}

func (l *queuesPage) list() g.Node {
	switch {
	case l.All == 0:
		return empty(g.Text("There are no queues yet. Connect a client to this broker and declare one: it appears here at once."))
	case len(l.Rows) == 0:
		return empty(g.Text("None of "+format.Plural(l.All, "queue")+" matches. "), link("/queues", g.Text("Show all")))
	}
	return g.Group{
		h.Div(h.Class("scroll"), h.Table(h.Class("rows"),
			h.THead(h.Tr(g.Map(l.Columns, columnHeading), h.Th(h.Scope("col"), g.Text("Dead letters to")))),
			h.TBody(g.Map(l.Rows, queueLine)))),
		h.P(h.Class("pager"), spaced(
			follow("prev", l.Before, "← Before"), h.Span(g.Text(format.Number(l.From)+"–"+format.Number(l.To)+" of "+format.Plural(l.Found, "queue"))), follow("next", l.After, "After →"))),
	}
}

func columnHeading(c column) g.Node {
	return h.Th(h.Scope("col"), g.If(c.Number, h.Class("number")), g.If(c.Sorted != "", h.Aria("sort", c.Sorted)), link(c.URL, g.Text(c.Name)))
}

func queueLine(q queueRow) g.Node {
	return h.Tr(
		h.Td(queueLink(queueURL(q.VHost, q.Name), q.VHost, q.Name)),
		amount(g.Text(format.Number(q.Ready))), amount(g.Text(format.Number(q.Unacked))), amount(orFaint(q.Consumers)),
		amount(deadlines(q.Forecast)), amount(willMiss(q.Forecast)),
		h.Td(either(q.DeadLetters, name(deadLettersTo(&q.Queue)), faint("nowhere"))))
}

// orFaint is a number, drawn faint if it is 0.
func orFaint(n int) g.Node {
	if n == 0 {
		return faint("0")
	}
	return g.Text(format.Number(n))
}

// deadlines is the number of deadlines in a forecast; nil for none.
func deadlines(f *monitor.Forecast) g.Node {
	switch {
	case f == nil:
		return faint("0")
	case f.Sampled:
		return g.Text("~" + format.Number(f.Deadlines))
	}
	return g.Text(format.Number(f.Deadlines))
}

// willMiss is how many messages of a forecast will expire.
func willMiss(f *monitor.Forecast) g.Node {
	if f == nil || f.WillMiss == 0 {
		return faint("0")
	}
	text, how := format.Number(f.WillMiss), "warn"
	if f.Sampled {
		text = "about " + text
	}
	if f.AtRisk {
		how = "bad"
	}
	return class(how, g.Text(text))
}
