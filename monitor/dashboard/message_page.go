package dashboard

import (
	"strconv"

	"curfew/monitor/dashboard/internal/content"
	"curfew/monitor/dashboard/internal/format"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// draw shows a message in a list of them.
func (m messageView) draw(now int64) g.Node {
	return h.Li(g.If(m.Expired, h.Class("expired")),
		h.Div(h.Class("message"), spaced(
			class("place", g.Text("#"+format.Number(m.Place))),
			class("grow", m.routed()),
			class("tags", m.tags()),
			class("when", m.due(now), g.If(m.Change != "", g.Group{g.Text(" "), link(m.Change, g.Text("Change…"))})),
			class("size", g.Text(format.Bytes(int64(m.BodyBytes)))))),
		g.If(len(m.Properties)+len(m.Headers) > 0, details("Properties and headers", pairs(m.Properties), pairs(m.Headers))),
		m.body("Body of message "+strconv.Itoa(m.Place)))
}

func (m *messageView) routed() g.Node {
	key, by := faint("no routing key"), "via the default exchange"
	if m.RoutingKey != "" {
		key = name(m.RoutingKey)
	}
	if m.Exchange != "" {
		by = "via " + format.Visible(m.Exchange)
	}
	return g.Group{class("what", key), g.Text(" "), faint(by)}
}

func (m *messageView) tags() g.Node {
	return spaced(
		g.If(m.Expired, class("tag bad", g.Text("past its deadline"))),
		g.If(m.Unacked, class("tag warn", g.Text("unacked"))),
		g.If(m.Redelivered, class("tag", g.Text("redelivered"))),
		g.If(!m.Persistent, class("tag faint", g.Text("transient"))))
}

func (m *messageView) due(now int64) g.Node {
	switch {
	case m.Deadline == 0:
		return faint("no deadline")
	case m.Expired:
		return h.Time(h.Title(format.UTC(m.Deadline)), g.Text("was due "+format.Until(m.Deadline, now)))
	}
	return h.Time(h.Title(format.UTC(m.Deadline)), g.Text("due "+format.Until(m.Deadline, now)))
}

// body shows as much of the body as was read; nothing if it is empty.
func (m *messageView) body(label string) g.Node {
	if m.Text == "" {
		return nil
	}
	how := "text"
	if m.Hex {
		how = "hex"
	}
	return g.Group{
		h.Pre(h.Class(how), h.TabIndex("0"), h.Aria("label", label), g.Text(m.Text)),
		g.If(m.Cut, h.P(h.Class("faint"), g.Text("… the first "+format.Bytes(int64(len(m.Body)))+" of "+format.Bytes(int64(m.BodyBytes))))),
	}
}

// details are folded until somebody opens them.
func details(summary string, entries ...g.Node) g.Node {
	return h.Details(h.Summary(g.Text(summary)), h.Dl(entries...))
}

func pairs(list []content.Pair) g.Group {
	return g.Map(list, func(p content.Pair) g.Node { return pair(p) })
}

func pair(p content.Pair, more ...g.Node) g.Node {
	return h.Div(h.Dt(name(p.Name)), h.Dd(name(p.Value), g.Group(more)))
}
