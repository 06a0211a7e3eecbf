package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *queuePage) draw(s *shown) drawing {
	return drawing{
		top: g.Group{
			crumbs("/queues", "Queues", p.VHost), h.H1(name(p.Name)),
			g.If(p.Changed != "", h.P(h.Class("done"), h.Role("status"), g.Text(p.Changed))),
		},
		live:   g.Group{p.figures(), p.warning()},
		bottom: g.Group{p.Peek.draw(s, p.Now), p.settings()},
	}
}

// crumbs say what a page is below.
func crumbs(to, text, vhost string) g.Node {
	return h.P(h.Class("crumbs"), link(to, g.Text(text)), g.Text(" · virtual host "), name(vhost))
}

func (p *queuePage) figures() g.Node {
	ahead, drain := g.Text("0"), g.Text("–")
	if p.Forecast != nil {
		ahead, drain = deadlines(p.Forecast), g.Text(rateText(p.Forecast.Rate))
	}
	return figures(
		figure("Ready", g.Text(number(p.Ready))),
		figure("Unacked", g.Text(number(p.Unacked))),
		figure("Consumers", g.If(p.Consumers == 0 && p.Ready > 0, h.Class("warn")), g.Text(number(p.Consumers))),
		figure("Deadlines", ahead),
		figure("Will miss", either(p.Forecast == nil, g.Text("0"), willMiss(p.Forecast))),
		figure("Drain /s", drain),
		figure("Published", g.Text(number(p.Published))),
		figure("Acked", g.Text(number(p.Acked))))
}

// warning says that deadlines will be missed, and why.
func (p *queuePage) warning() g.Node {
	f := p.Forecast
	if f == nil || f.WillMiss == 0 {
		return nil
	}
	text := number(f.WillMiss) + " of " + plural(f.Deadlines, "deadline") + " will be missed"
	if f.Sampled {
		text = "About " + text
	}
	if f.FirstMiss != 0 {
		text += ", the first " + until(f.FirstMiss, p.Now)
	}
	how := "warn"
	if f.AtRisk {
		how = "bad"
	}
	return h.P(h.Class("verdict "+how), g.Text(text+": "+why(p.Consumers, f.Rate)+". Add consumers, or give messages more time."))
}

func why(consumers int, rate float64) string {
	if consumers == 0 {
		return "nobody consumes"
	}
	return "consumers take " + rateText(rate) + " a second"
}

func (p *peek) draw(s *shown, now int64) g.Node {
	ends := []choice{{"Head", p.Head}, {"Tail", p.Tail}}
	toggle := "Show bodies"
	if p.Bodies {
		toggle = "Hide bodies"
	}
	return card("peek", "Messages", choices("View", ends, link(p.Toggle, g.Text(toggle))), p.list(s, now))
}

func (p *peek) list(s *shown, now int64) g.Node {
	switch {
	case p.Refused:
		return empty(g.Text("This user may not read the queue: ask for the permission to read it."))
	case len(p.Messages) == 0 && p.Offset > 0:
		return empty(g.Text("The queue is empty from here on. "), link(p.Start, g.Text("To its head")), g.Text("."))
	case len(p.Messages) == 0:
		return empty(g.Text("The queue is empty."))
	}
	return g.Group{
		h.P(h.Class("faint"), g.Text("A look that takes nothing: no message is marked redelivered, none changes its place. As of "+utc(now)+".")),
		h.Ol(h.Class("messages"), g.Map(p.Messages, func(m shownMessage) g.Node { return m.draw(now) })),
		h.P(h.Class("pager"), spaced(follow("prev", p.Before, "← Before"), follow("next", p.After, "After →"), link(s.Here, g.Text("Look again")))),
	}
}

func (p *queuePage) settings() g.Node {
	lives := g.Text("without end, unless they say otherwise")
	if p.TTLMillis >= 0 {
		lives = g.Text(millis(p.TTLMillis))
	}
	letters := name(p.DeadLetterTo)
	if p.DeadLetterTo == "" {
		letters = g.Group{class("warn", g.Text("nowhere")), g.Text(": what expires here is dropped; set a policy with dead-letter-exchange")}
	}
	return card("set", "Settings", nil, facts(
		fact("Type", names(append([]string{p.Type}, p.Features...), nil)),
		fact("Messages live", lives),
		fact("Dead letters to", letters),
		fact("Size", g.Text(byteCount(p.Bytes)+", "+byteCount(p.PersistentBytes)+" of it persistent")),
		fact("Policy", orNone(p.Policy)),
		fact("Operator policy", orNone(p.OperatorPolicy)),
		g.If(p.ActiveConsumer != "", fact("Single active consumer", name(p.ActiveConsumer))),
		g.Map(p.Arguments, func(a Pair) g.Node { return pair(a, g.Text(" "), faint("argument")) }),
		g.Map(p.Effective, func(a Pair) g.Node { return pair(a, g.Text(" "), faint("by policy")) })))
}

func orNone(text string) g.Node {
	if text == "" {
		return faint("none")
	}
	return name(text)
}
