package topology

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
)

func (p *publishForm) Draw(s *ui.Info) ui.Drawing {
	f := p.Form
	became := ui.Done(p.Done)
	if p.Lost {
		became = ui.Problem("Published, and no queue took it: nothing is bound to the exchange for this key. The message is lost.")
	}
	back := ui.Link(ui.At("/exchange", "vhost", f.Get("vhost"), "name", f.Get("exchange")), g.Text("Back to the exchange"))
	if f.Get("exchange") == "" && f.Get("key") != "" {
		back = ui.Link(ui.QueueURL(f.Get("vhost"), f.Get("key")), g.Text("To the queue"))
	}
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(exchangesTab, g.Text("Exchanges"))), h.H1(g.Text("Publish a message")), became,
		h.Section(h.Class("card"), s.Sheet(publish, f, g.Group{
			f.Field("Exchange", "exchange", "Empty: the default exchange, which routes to the queue named by the key."),
			f.ChooseVHost(p.VHosts),
			f.Field("Routing key", "key", "", h.MaxLength("255")),
			f.Field("Expires after", "expiration", "In ms, or as 90s, 10m or 24h. Empty: the queue's time to live.", h.Placeholder("90s")),
			f.Area("Body", "body", "", 8),
			f.Field("Content type", "content_type", ""),
			h.FieldSet(h.Legend(g.Text("The message")), f.Check("survives a restart", "persistent")),
			h.Details(g.If(!f.OK(), g.Attr("open")), h.Summary(g.Text("Deadline at an instant, headers and other properties")), h.Div(h.Class("sheet"),
				f.Field("Deadline (UTC)", "deadline", "Instead of a time to live. It sets the header x-expires-at.", h.Type("datetime-local"), h.Step("1")),
				f.Field("Priority", "priority", "", number),
				f.Area("Headers", "headers", `A JSON object, for example {"tenant": "acme"}.`, 3),
				f.Field("Message id", "message_id", ""), f.Field("Correlation id", "correlation_id", ""),
				f.Field("Type", "type", ""), f.Field("Reply to", "reply_to", ""), f.Field("App id", "app_id", ""), f.Field("Content encoding", "content_encoding", ""))),
		}, ui.Primary("Publish"), back)),
	}}
}

func (p *getPage) Draw(s *ui.Info) ui.Drawing {
	f := p.Form
	return ui.Drawing{Live: g.Group{
		ui.QueueCrumbs(p.VHost, p.Name), h.H1(g.Text("Get a message")),
		p.result(),
		h.Section(h.Class("card"),
			ui.Empty(g.Text("This takes the first ready message as a consumer would, before the page with it is sent: if the connection breaks in between, a message removed for good is lost unseen. To look without taking a message, "),
				ui.Link(ui.QueueURL(p.VHost, p.Name), g.Text("use the queue's page")), g.Text(".")),
			s.Sheet(getMessage, f, g.Group{
				ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Name),
				f.Choose("Then", "then", "", "requeue", "put it back, marked as redelivered", "reject", "reject it: it is dead-lettered, or dropped", "ack", "remove it for good"),
			}, ui.Danger("Get it"), ui.Link(ui.QueueURL(p.VHost, p.Name), g.Text("Cancel")))),
	}}
}

func (p *getPage) result() g.Node {
	if !p.Asked {
		return nil
	}
	if p.Got == nil {
		return ui.Only(g.Text("No message is ready."))
	}
	m := p.Got
	how := "pre"
	if m.Hex {
		how = "hex"
	}
	became := "It left the queue."
	if p.Requeued {
		became = "It is back in the queue."
	}
	exchange := ui.Name(m.Exchange)
	if m.Exchange == "" {
		exchange = g.Text("(default exchange)")
	}
	return g.Group{
		ui.Done(became),
		ui.Card("got", "The message", nil, ui.Facts(
			ui.Fact("Exchange", exchange), ui.Fact("Routing key", ui.Name(m.RoutingKey)), g.If(m.Redelivered, ui.Fact("Redelivered", g.Text("yes"))),
			ui.Pairs(m.Properties), ui.Pairs(m.Headers), ui.Fact("Size", g.Text(ui.Bytes(int64(m.Bytes)))), ui.Fact("Behind it", g.Text(ui.Plural(m.Left, "message")))),
			h.Pre(h.Class(how), g.Text(m.Text)), g.If(m.Cut, ui.Faint("Only the first 64 KiB are shown."))),
	}
}
