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
		ui.MessageBody("Body of message "+strconv.Itoa(m.Place), operate.Body{Start: m.Browsed.Message.Body, Bytes: m.BodyBytes}))
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
