package dashboard

import (
	"slices"

	"curfew/monitor/dashboard/internal/content"
	"curfew/monitor/dashboard/internal/format"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *queuePage) draw(s *pageInfo) drawing {
	return drawing{
		top: g.Group{
			crumbs("/queues", "Queues", p.VHost), h.H1(name(p.Name)),
			g.If(p.Changed != "", h.P(h.Class("done"), h.Role("status"), g.Text(p.Changed))),
		},
		live:   g.Group{p.figures(), p.warning()},
		bottom: g.Group{p.Peek.draw(s, p.Now), p.settings()},
	}
}

// crumbs are the way to a page.
func crumbs(to, text, vhost string) g.Node {
	return h.P(h.Class("crumbs"), link(to, g.Text(text)), g.Text(" · virtual host "), name(vhost))
}

func (p *queuePage) figures() g.Node {
	ahead, drain := g.Text("0"), g.Text("–")
	if p.Forecast != nil {
		ahead, drain = deadlines(p.Forecast), g.Text(format.Rate(p.Forecast.Rate))
	}
	return figures(
		figure("Ready", g.Text(format.Number(p.Ready))),
		figure("Unacked", g.Text(format.Number(p.Unacked))),
		figure("Consumers", g.If(p.Consumers == 0 && p.Ready > 0, h.Class("warn")), g.Text(format.Number(p.Consumers))),
		figure("Deadlines", ahead),
		figure("At risk", either(p.Forecast == nil, g.Text("0"), willMiss(p.Forecast))),
		figure("Drain /s", drain),
		figure("Published", g.Text(format.Number(p.Counts.Published))),
		figure("Acked", g.Text(format.Number(p.Counts.Acked))))
}

// warning says how many messages are at risk, and why.
func (p *queuePage) warning() g.Node {
	f := p.Forecast
	if f == nil || f.WillMiss == 0 {
		return nil
	}
	text := format.Number(f.WillMiss) + " of " + format.Plural(f.Deadlines, "message") + " with a deadline will expire"
	if f.Sampled {
		text = "About " + text
	}
	if f.FirstMiss != 0 {
		text += ", the first " + format.Until(f.FirstMiss, p.Now)
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
	return "consumers take " + format.Rate(rate) + " a second"
}

func (p *peek) draw(s *pageInfo, now int64) g.Node {
	ends := []choice{{"Head", p.Head}, {"Tail", p.Tail}}
	toggle := "Show bodies"
	if p.Bodies {
		toggle = "Hide bodies"
	}
	return card("peek", "Messages", choices("View", ends, link(p.Toggle, g.Text(toggle))), p.list(s, now))
}

func (p *peek) list(s *pageInfo, now int64) g.Node {
	switch {
	case p.Refused:
		return empty(g.Text("This user may not read the queue: ask for the permission to read it."))
	case len(p.Messages) == 0 && p.Offset > 0:
		return empty(g.Text("There are no messages from here on. "), link(p.Start, g.Text("Back to the beginning")), g.Text("."))
	case len(p.Messages) == 0:
		return empty(g.Text("The queue is empty."))
	}
	return g.Group{
		h.P(h.Class("faint"), g.Text("Looking changes nothing: no message is marked as redelivered, and none changes its place. As of "+format.UTC(now)+".")),
		h.Ol(h.Class("messages"), g.Map(p.Messages, func(m messageView) g.Node { return m.draw(now) })),
		h.P(h.Class("pager"), spaced(follow("prev", p.Before, "← Before"), follow("next", p.After, "After →"), link(s.Here, g.Text("Look again")))),
	}
}

func (p *queuePage) settings() g.Node {
	lives := g.Text("no limit, unless a message has one")
	if p.TTLMillis >= 0 {
		lives = g.Text(format.Millis(p.TTLMillis))
	}
	letters := name(deadLettersTo(&p.Queue))
	if !p.DeadLetters {
		letters = g.Group{class("warn", g.Text("nowhere")), g.Text(": what expires here is dropped; set a policy with dead-letter-exchange")}
	}
	return card("set", "Settings", nil, facts(
		fact("Type", names(append([]string{p.Type}, p.features()...), nil)),
		fact("Time to live", lives),
		fact("Dead letters to", letters),
		fact("Size", g.Text(format.Bytes(p.ReadyBytes+p.UnackedBytes)+", "+format.Bytes(p.PersistentBytes)+" of it persistent")),
		fact("Policy", orNone(p.Policy)),
		fact("Operator policy", orNone(p.OperatorPolicy)),
		g.If(p.ActiveConsumer != "", fact("Single active consumer", name(p.ActiveConsumer))),
		g.Map(content.Fields(p.Args), func(a content.Pair) g.Node { return pair(a, g.Text(" "), faint("argument")) }),
		g.Map(content.Fields(p.Effective), func(a content.Pair) g.Node { return pair(a, g.Text(" "), faint("by policy")) })))
}

// features are the flags that the queue was declared with.
func (p *queuePage) features() (list []string) {
	for name, is := range map[string]bool{"durable": p.Durable, "exclusive": p.Exclusive, "deleted with its last consumer": p.AutoDelete} {
		if is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func orNone(text string) g.Node {
	if text == "" {
		return faint("none")
	}
	return name(text)
}
