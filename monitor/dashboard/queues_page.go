package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor"
)

func (l *queueList) draw(*shown) drawing {
	return drawing{top: g.Group{h.H1(g.Text("Queues")), l.form()}, live: h.Section(h.Class("card"), l.list())}
}

func (l *queueList) form() g.Node {
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

func (l *queueList) list() g.Node {
	switch {
	case l.All == 0:
		return empty(g.Text("There are no queues yet. Connect a client to the broker and declare one, or try "), code("curfew demo"), g.Text("."))
	case len(l.Rows) == 0:
		return empty(g.Text("None of "+plural(l.All, "queue")+" fits. "), link("/queues", g.Text("Show all")))
	}
	return g.Group{
		h.Div(h.Class("scroll"), h.Table(h.Class("rows"),
			h.THead(h.Tr(g.Map(l.Columns, columnHeading), h.Th(h.Scope("col"), g.Text("Dead letters to")))),
			h.TBody(g.Map(l.Rows, queueLine)))),
		h.P(h.Class("pager"), spaced(
			follow("prev", l.Before, "← Before"), h.Span(g.Text(number(l.From)+"–"+number(l.To)+" of "+plural(l.Found, "queue"))), follow("next", l.After, "After →"))),
	}
}

func columnHeading(c column) g.Node {
	return h.Th(h.Scope("col"), g.If(c.Number, h.Class("number")), g.If(c.Sorted != "", h.Aria("sort", c.Sorted)), link(c.URL, g.Text(c.Name)))
}

func queueLine(q queueRow) g.Node {
	return h.Tr(
		h.Td(queueLink(queueURL(q.VHost, q.Name), q.VHost, q.Name)),
		amount(g.Text(number(q.Ready))), amount(g.Text(number(q.Unacked))), amount(orFaint(q.Consumers)),
		amount(deadlines(q.Forecast)), amount(willMiss(q.Forecast)),
		h.Td(either(q.DeadLetterTo != "", name(q.DeadLetterTo), faint("nowhere"))))
}

// orFaint is a number that need not be noticed if it is 0.
func orFaint(n int) g.Node {
	if n == 0 {
		return faint("0")
	}
	return g.Text(number(n))
}

// deadlines is how many a forecast is about; nil: none.
func deadlines(f *monitor.Forecast) g.Node {
	switch {
	case f == nil:
		return faint("0")
	case f.Sampled:
		return g.Text("~" + number(f.Deadlines))
	}
	return g.Text(number(f.Deadlines))
}

// willMiss is how many of them will be missed.
func willMiss(f *monitor.Forecast) g.Node {
	if f == nil || f.WillMiss == 0 {
		return faint("0")
	}
	text, how := number(f.WillMiss), "warn"
	if f.Sampled {
		text = "about " + text
	}
	if f.AtRisk {
		how = "bad"
	}
	return class(how, g.Text(text))
}
