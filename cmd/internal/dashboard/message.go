package dashboard

import (
	"strconv"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// draw shows a message in a list of them.
func (m messageView) draw(now int64) g.Node {
	properties, headers := ui.Properties(&m.Properties), ui.Fields(m.Properties.Headers)
	return h.Li(g.If(m.Expired, h.Class("expired")),
		h.Div(h.Class("message"), ui.Spaced(
			ui.Class("place", g.Text("#"+ui.Number(m.Place))),
			ui.Class("grow", m.routed()),
			ui.Class("tags", ui.Spaced(
				g.If(m.Expired, ui.Class("tag bad", g.Text("past its deadline"))),
				g.If(m.State == operate.Unacked, ui.Class("tag warn", g.Text("unacked"))),
				g.If(m.State == operate.Waiting, ui.Class("tag", g.Text("waiting"))),
				g.If(m.Redelivered, ui.Class("tag", g.Text("redelivered"))),
				g.If(!m.Persistent, ui.Class("tag faint", g.Text("transient"))))),
			ui.Class("when", m.due(now), g.If(m.Change != "", g.Group{g.Text(" "), ui.Link(m.Change, g.Text("Change…"))})),
			ui.Class("size", g.Text(ui.Bytes(int64(m.BodyBytes)))))),
		g.If(len(properties)+len(headers) > 0, h.Details(h.Summary(g.Text("Properties and headers")), h.Dl(ui.Pairs(properties), ui.Pairs(headers)))),
		m.body("Body of message "+strconv.Itoa(m.Place)))
}

func (m *messageView) routed() g.Node {
	key, by, id := ui.Faint("no routing key"), "via the default exchange", m.Properties.MessageID
	if name := string(m.Browsed.Message.RoutingKey); name != "" {
		key = ui.Name(name)
	}
	if name := string(m.Browsed.Message.Exchange); name != "" {
		by = "via " + ui.Visible(name)
	}
	if id != "" {
		return g.Group{ui.Class("what", ui.Name(id)), g.Text(" "), key, g.Text(" "), ui.Faint(by)}
	}
	return g.Group{ui.Class("what", key), g.Text(" "), ui.Faint(by)}
}

func (m *messageView) due(now int64) g.Node {
	switch {
	case m.DeadlineMillis == 0:
		return ui.Faint("no deadline")
	case m.Expired:
		return h.Time(h.Title(ui.UTC(m.DeadlineMillis)), g.Text("was due "+ui.Until(m.DeadlineMillis, now)))
	}
	return h.Time(h.Title(ui.UTC(m.DeadlineMillis)), g.Text("due "+ui.Until(m.DeadlineMillis, now)))
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
		g.If(m.Cut, h.P(h.Class("faint"), g.Text("… the first "+ui.Bytes(int64(len(m.Browsed.Message.Body)))+" of "+ui.Bytes(int64(m.BodyBytes))))),
	}
}
