package dashboard

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *plan) draw(s *shown) drawing {
	title, back := "Nothing would be replayed", "Back"
	if p.Run.Replayed > 0 {
		title, back = "Replay "+plural(p.Run.Replayed, "message")+"?", "Do not"
	}
	o := &p.Order
	return drawing{live: g.Group{
		h.P(h.Class("crumbs"), link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), link(lettersURL(o.VHost, o.Queue), name(o.Queue))),
		h.H1(g.Text(title)),
		h.Section(h.Class("card"), p.facts()),
		s.change("/dead-letters/replay", h.Class("filter"), hidden("confirmed", "1"), o.fields(),
			g.If(p.Run.Replayed > 0, h.Button(h.Class("primary"), h.AutoFocus(), g.Text("Replay "+plural(p.Run.Replayed, "message")))),
			link(lettersURL(o.VHost, o.Queue), g.Text(back))),
	}}
}

func (p *plan) facts() g.Node {
	to, lives := "where each was published to", "afresh, as published"
	if p.Order.To == "queue" {
		to = "the queue each died in"
	}
	switch p.Order.TTL {
	case "remaining":
		lives = "what is left of it"
	case "none":
		lives = "its queue's only"
	}
	return facts(
		fact("Looked at", g.Text(number(p.Run.Scanned))),
		fact("Fit", g.Text(number(p.Run.Matched))),
		fact("Would go back", bold(number(p.Run.Replayed))),
		g.Map(p.Run.Left, func(l Pair) g.Node { return fact("Would stay", name(l.Value), g.Text(" "), faint(leftWords(l.Name))) }),
		fact("To", g.Text(to)),
		fact("Time to live", g.Text(lives)))
}

// fields are an order in a form that nobody sees.
func (o *ReplayOrder) fields() g.Node {
	limit, rate, keep := "", "", ""
	if o.Limit > 0 {
		limit = strconv.Itoa(o.Limit)
	}
	if o.Rate > 0 {
		rate = strconv.FormatFloat(o.Rate, 'g', -1, 64)
	}
	if o.KeepDeaths {
		keep = "1"
	}
	return g.Group{
		hidden("vhost", o.VHost), hidden("name", o.Queue), o.Filter.fields(), hidden("to", o.To), hidden("ttl", o.TTL),
		hiddenIf("limit", limit), hiddenIf("rate", rate), hiddenIf("keep_deaths", keep),
	}
}
