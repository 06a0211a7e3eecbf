package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor/dashboard/internal/format"
)

// choices are links to views; the current one is not a link.
func choices(label string, list []choice, more ...g.Node) g.Node {
	return h.Nav(h.Class("choices"), h.Aria("label", label), spaced(append(g.Map(list, choice.draw), more...)...))
}

func (c choice) draw() g.Node {
	if c.URL == "" {
		return h.B(h.Aria("current", "true"), g.Text(c.Name))
	}
	return link(c.URL, g.Text(c.Name))
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
		return t.Draw()
	case t.Later > 0:
		return empty(g.Text("Nothing is due within " + t.Window + ", and " + format.Plural(t.Later, "deadline") + " later. Choose a longer span."))
	}
	return empty(g.Text("No deadlines ahead. Publish a message with an "), code("expiration"), g.Text(", or give a queue an "), code("x-message-ttl"),
		g.Text(" or a policy with "), code("message-ttl"), g.Text(", and it shows here."))
}
