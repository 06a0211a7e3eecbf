package dashboard

import (
	"strconv"
	"time"

	"curfew/monitor/dashboard/internal/format"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *deadlinePage) draw(s *pageInfo) drawing {
	top := g.Group{p.crumbs(), h.H1(g.Text("A message's deadline"))}
	switch {
	case p.Refused:
		return drawing{top: append(top, only(g.Text("This user may not read the queue: ask for the permission to read it.")))}
	case !p.Changes:
		return drawing{top: append(top, p.message(), only(g.Text("This user may not change deadlines here.")))}
	}
	return drawing{top: append(top, p.message(), p.shift(s), p.set(s), p.fire(s))}
}

func (p *deadlinePage) crumbs() g.Node {
	return h.P(h.Class("crumbs"), link("/queues", g.Text("Queues")), g.Text(" / "), link(queueURL(p.VHost, p.Queue), name(p.Queue)), g.Text(" · virtual host "), name(p.VHost))
}

func (p *deadlinePage) message() g.Node {
	m := &p.Message
	return h.Section(h.Class("card"), facts(
		fact("Deadline", due(m.Deadline, p.Now)),
		fact("Routing key", name(m.RoutingKey)),
		g.If(m.Unacked, fact("State", class("warn", g.Text("held by a consumer")))),
		pairs(m.Properties), pairs(m.Headers),
		fact("Size", g.Text(format.Bytes(int64(m.BodyBytes))))),
		m.body("Body"))
}

// due shows a deadline, or "none".
func due(at, now int64) g.Node {
	if at == 0 {
		return faint("none")
	}
	return g.Group{bold(format.UTC(at)), g.Text(" "), faint(format.Until(at, now))}
}

// form is a form that changes the deadline of the message on the page.
func (p *deadlinePage) form(s *pageInfo, children ...g.Node) g.Node {
	return s.change("/deadline", h.Class("filter"),
		hidden("vhost", p.VHost), hidden("name", p.Queue), hidden("seq", strconv.FormatUint(p.Message.Seq, 10)), g.Group(children))
}

func (p *deadlinePage) was() g.Node { return hidden("was", strconv.FormatInt(p.Message.Deadline, 10)) }

func choiceOf(do, text string) g.Node { return h.Button(h.Name("do"), h.Value(do), g.Text(text)) }

// shift is the form that gives a message with a deadline more time, or less.
func (p *deadlinePage) shift(s *pageInfo) g.Node {
	if p.Message.Deadline == 0 {
		return nil
	}
	return card("shift", "More time, or less", nil, p.form(s, p.was(),
		field("By", "by", "10m", h.Required(), g.Attr("size", "8")), choiceOf("extend", "Extend…"), choiceOf("shorten", "Shorten…"), choiceOf("cancel", "No deadline…")))
}

func (p *deadlinePage) set(s *pageInfo) g.Node {
	at := time.UnixMilli(max(p.Message.Deadline, p.Now)).UTC().Format("2006-01-02T15:04:05")
	return card("set", "Another deadline", nil, p.form(s, p.was(),
		field("At (UTC)", "at", at, h.Type("datetime-local"), h.Step("1"), h.Required()), choiceOf("set", "Set…")))
}

func (p *deadlinePage) fire(s *pageInfo) g.Node {
	return card("fire", "Now", nil, p.form(s, p.was(),
		h.Label(h.Class("inline"), h.Input(h.Type("checkbox"), h.Name("drop"), h.Value("1")), g.Text(" Drop it, even if its queue dead-letters")),
		choiceOf("fire", "Expire it now…")))
}

func (p *deadlinePlan) draw(s *pageInfo) drawing {
	title, do := p.title()
	return drawing{live: g.Group{
		p.crumbs(),
		h.H1(g.Text(title)),
		h.Section(h.Class("card"), facts(
			fact("Routing key", name(p.Message.RoutingKey)),
			pairs(p.Message.Properties),
			fact("Deadline", due(p.Change.Was, p.Now)),
			g.If(!p.Change.Fire, fact("Then", due(p.Change.To, p.Now))),
			g.If(p.Message.Unacked, fact("State", class("warn", g.Text("held by a consumer")), g.Text(": it stays there, and expires if it comes back after the deadline"))))),
		p.form(s, hidden("confirmed", "1"), hidden("was", strconv.FormatInt(p.Change.Was, 10)), p.fields(),
			h.Button(h.Class("primary"), h.AutoFocus(), g.Text(do)),
			link(deadlineURL(p.VHost, p.Queue, p.Message.Seq), g.Text("Cancel"))),
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
		return "This deadline has passed: the message expires at once. Go on?", "Expire it now"
	}
	return "Give this message the deadline " + format.UTC(c.To) + "?", "Change the deadline"
}

// fields are the hidden fields of the change: what the user saw is what is done.
func (p *deadlinePlan) fields() g.Node {
	switch {
	case p.Change.Fire && p.Change.Drop:
		return g.Group{hidden("do", "fire"), hidden("drop", "1")}
	case p.Change.Fire:
		return hidden("do", "fire")
	case p.Change.To == 0:
		return hidden("do", "cancel")
	}
	return g.Group{hidden("do", "to"), hidden("to", strconv.FormatInt(p.Change.To, 10))}
}
