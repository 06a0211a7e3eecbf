package dashboard

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// choices are links to views, the one that is shown being none.
func choices(label string, list []choice, more ...g.Node) g.Node {
	return h.Nav(h.Class("choices"), h.Aria("label", label), spaced(append(g.Map(list, choice.draw), more...)...))
}

func (c choice) draw() g.Node {
	if c.URL == "" {
		return h.B(h.Aria("current", "true"), g.Text(c.Name))
	}
	return link(c.URL, g.Text(c.Name))
}

func rectangle(x, y, width, height int, children ...g.Node) g.Node {
	return g.El("rect", g.Attr("x", strconv.Itoa(x)), g.Attr("y", strconv.Itoa(y)),
		g.Attr("width", strconv.Itoa(width)), g.Attr("height", strconv.Itoa(height)), g.Group(children))
}

// picture is an SVG that is stretched to where it stands.
func picture(width, height int, children ...g.Node) g.Node {
	return h.SVG(g.Attr("viewBox", "0 0 "+strconv.Itoa(width)+" "+strconv.Itoa(height)), g.Attr("preserveAspectRatio", "none"), g.Group(children))
}

// strip shows a share of 100 to those who see it.
func strip(share int, attributes ...g.Node) g.Node {
	return picture(100, 10, h.Aria("hidden", "true"), rectangle(0, 1, share, 8, attributes...))
}

func (t *timeline) draw() g.Node {
	if t == nil {
		return nil
	}
	return card("ahead", "Deadlines ahead", choices("Span", t.Choices), t.content())
}

func (t *timeline) content() g.Node {
	switch {
	case t.Inside > 0 || t.Overdue > 0:
		return g.Group{t.chart(), t.sums()}
	case t.Later > 0:
		return empty(g.Text("Nothing is due within " + t.Window + "; " + plural(t.Later, "deadline") + " lie behind that. Choose a longer span."))
	}
	return empty(g.Text("No deadlines ahead. Publish a message with an "), code("expiration"), g.Text(", or give a queue an "), code("x-message-ttl"),
		g.Text(" or a policy with "), code("message-ttl"), g.Text(", and it shows here."))
}

func (t *timeline) chart() g.Node {
	line := func(y string) g.Node {
		return g.El("line", h.Class("grid"), g.Attr("x1", "0"), g.Attr("x2", strconv.Itoa(t.Width)), g.Attr("y1", y), g.Attr("y2", y))
	}
	label := plural(t.Inside, "deadline") + " in the next " + t.Window + ", at most " + number(t.Most) + " in one bar"
	return h.Div(h.Class("chart"),
		class("scale", g.Text(number(t.Most))),
		picture(t.Width, t.Height, h.Class("timeline"), h.Role("img"), h.Aria("label", label),
			line("0.5"), line(strconv.Itoa(t.Height/2)),
			g.Map(t.Bars, bar.draw)),
		h.Div(h.Class("ticks"), spaced(g.Map(t.Ticks, func(text string) g.Node { return h.Span(g.Text(text)) })...)))
}

func (b bar) draw() g.Node {
	if b.Count == 0 {
		return nil
	}
	return rectangle(b.X, b.Y, b.Width, b.Height, g.El("title", g.Text(b.Label)))
}

func (t *timeline) sums() g.Node {
	return h.P(h.Class("note"), bold(number(t.Inside)), g.Text(" within "+t.Window),
		g.If(t.Later > 0, g.Group{g.Text(" · "), bold(number(t.Later)), g.Text(" later")}),
		g.If(t.Overdue > 0, g.Group{g.Text(" · "), class("warn", bold(number(t.Overdue)), g.Text(" past their deadline, held by consumers"))}))
}

// draw shows it; over says what span it is of.
func (l *histogram) draw(over string) g.Node {
	or := func(text string) g.Node {
		if text == "" {
			return bold("more than a minute")
		}
		return bold(text)
	}
	return g.Group{
		h.P(h.Class("note"), bold(plural(l.Total, "message")), g.Text(" "+over+". Half left their queue "), or(l.Half), g.Text(" after their deadline, 99 in 100 "), or(l.Most), g.Text("."),
			g.If(l.Late > 0, g.Group{g.Text(" "), class("bad", g.Text(number(l.Late)+" were more than 1 s late."))})),
		h.Table(h.Class("bars"), h.TBody(g.Map(l.Rows, histogramRow.draw))),
		h.P(h.Class("faint"), g.Text("Lengths are logarithmic.")),
	}
}

func (r histogramRow) draw() g.Node {
	count := faint("0")
	if r.Count > 0 {
		count = g.Text(number(r.Count))
	}
	return h.Tr(h.Th(h.Scope("row"), g.Text(r.Label)), h.Td(strip(r.Width, g.If(r.Late, h.Class("late")))), amount(count))
}
