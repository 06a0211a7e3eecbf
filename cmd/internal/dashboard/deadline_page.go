package dashboard

import (
	"strconv"
	"time"

	"curfew/cmd/internal/dashboard/internal/ui"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *deadlinePage) Draw(s *ui.Info) ui.Drawing {
	top := g.Group{ui.QueueCrumbs(p.VHost, p.Queue), h.H1(g.Text("A message's deadline"))}
	switch {
	case p.Refused:
		return ui.Drawing{Top: append(top, ui.Only(g.Text(ui.MayNotRead)))}
	case !p.Changes:
		return ui.Drawing{Top: append(top, p.message(), ui.Only(g.Text("This user may not change deadlines here.")))}
	}
	return ui.Drawing{Top: append(top, p.message(), p.shift(s), p.set(s), p.fire(s))}
}

func (p *deadlinePage) message() g.Node {
	m := &p.Message
	return h.Section(h.Class("card"), ui.Facts(
		ui.Fact("Deadline", ui.Due(m.DeadlineMillis, p.Now)),
		ui.Fact("Routing key", ui.Name(string(m.Browsed.Message.RoutingKey))),
		g.If(m.Unacked(), ui.Fact("State", ui.Class("warn", g.Text("held by a consumer")))),
		ui.Pairs(ui.Properties(&m.Properties)), ui.Pairs(ui.Fields(m.Properties.Headers)),
		ui.Fact("Size", g.Text(ui.Bytes(int64(m.BodyBytes))))),
		m.body("Body"))
}

// form is a form that changes the deadline of the message on the page.
func (p *deadlinePage) form(s *ui.Info, children ...g.Node) g.Node {
	return s.Change("/deadline", "filter",
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("seq", strconv.FormatUint(uint64(p.Message.Seq), 10)), ui.Hidden("queue", strconv.FormatUint(p.QueueID, 10)), g.Group(children))
}

func (p *deadlinePage) was() g.Node {
	return ui.Hidden("was", strconv.FormatInt(p.Message.DeadlineMillis, 10))
}

func choiceOf(do, text string) g.Node { return h.Button(h.Name("do"), h.Value(do), g.Text(text)) }

// shift is the form that gives a message with a deadline more time, or less.
func (p *deadlinePage) shift(s *ui.Info) g.Node {
	if p.Message.DeadlineMillis == 0 {
		return nil
	}
	return ui.Card("shift", "More time, or less", nil, p.form(s, p.was(),
		ui.NewForm(nil, "by", "10m").Field("By", "by", "", h.Required(), g.Attr("size", "8")), choiceOf("extend", "Extend…"), choiceOf("shorten", "Shorten…"), choiceOf("cancel", "No deadline…")))
}

func (p *deadlinePage) set(s *ui.Info) g.Node {
	at := time.UnixMilli(max(p.Message.DeadlineMillis, p.Now)).UTC().Format("2006-01-02T15:04:05")
	return ui.Card("set", "Another deadline", nil, p.form(s, p.was(),
		ui.NewForm(nil, "at", at).Field("At (UTC)", "at", "", h.Type("datetime-local"), h.Step("1"), h.Required()), choiceOf("set", "Set…")))
}

func (p *deadlinePage) fire(s *ui.Info) g.Node {
	return ui.Card("fire", "Now", nil, p.form(s, p.was(),
		ui.NewForm(nil).Check("Drop it, even if its queue dead-letters", "drop"),
		choiceOf("fire", "Expire it now…")))
}

func (p *deadlinePlan) Draw(s *ui.Info) ui.Drawing {
	title, do := p.title()
	return ui.Drawing{Live: g.Group{
		ui.QueueCrumbs(p.VHost, p.Queue),
		h.H1(g.Text(title)),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Routing key", ui.Name(string(p.Message.Browsed.Message.RoutingKey))),
			ui.Pairs(ui.Properties(&p.Message.Properties)),
			ui.Fact("Deadline", ui.Due(p.Change.Was, p.Now)),
			g.If(!p.Change.Fire, ui.Fact("Then", ui.Due(p.Change.To, p.Now))),
			g.If(p.Message.Unacked(), ui.Fact("State", ui.Class("warn", g.Text("held by a consumer")), g.Text(": it stays with the consumer, and expires if it comes back after the deadline"))))),
		p.form(s, ui.Hidden("confirmed", "1"), ui.Hidden("was", strconv.FormatInt(p.Change.Was, 10)), p.fields(),
			h.Button(h.Class("primary"), h.AutoFocus(), g.Text(do)),
			ui.Link(ui.DeadlineURL(p.VHost, p.Queue, p.QueueID, uint64(p.Message.Seq)), g.Text("Cancel"))),
	}}
}

// title is the question to the user and the text of the button.
func (p *deadlinePlan) title() (question, do string) {
	c := &p.Change
	switch {
	case c.Fire && c.Drop:
		return "Drop this message now?", "Drop it"
	case c.Fire:
		return "Expire this message now?", "Expire it now"
	case c.To == 0:
		return "Remove the deadline of this message?", "Remove the deadline"
	case c.To <= p.Now:
		return "This deadline has passed: the message expires at once. Continue?", "Expire it now"
	}
	return "Give this message the deadline " + ui.UTC(c.To) + "?", "Change the deadline"
}

// fields are the hidden fields of the change: what the user saw is what is done.
func (p *deadlinePlan) fields() g.Node {
	switch {
	case p.Change.Fire && p.Change.Drop:
		return g.Group{ui.Hidden("do", "fire"), ui.Hidden("drop", "1")}
	case p.Change.Fire:
		return ui.Hidden("do", "fire")
	case p.Change.To == 0:
		return ui.Hidden("do", "cancel")
	}
	return g.Group{ui.Hidden("do", "to"), ui.Hidden("to", strconv.FormatInt(p.Change.To, 10))}
}
