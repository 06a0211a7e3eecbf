package dashboard

import (
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor/alert"
	"curfew/monitor/dashboard/internal/format"
)

func (p *alertPage) draw(s *pageInfo) drawing {
	top := h.H1(g.Text("Alerts"))
	if !p.On {
		return drawing{top: top, live: only(g.Text("The monitor is off, so there are no alerts. Set CURFEW_MONITOR=true."))}
	}
	return drawing{top: top, live: g.Group{p.mistakes(), p.firing(), p.silences(s), p.receivers()}, bottom: p.silenceForm(s)}
}

// mistakes lists the mistakes in the alerts file.
func (p *alertPage) mistakes() g.Node {
	if p.Rules == nil {
		return nil
	}
	lines := strings.Split(p.Rules.Error(), "\n")
	return card("rules", "The alerts file is not in force", nil,
		h.Ul(g.Map(lines, func(line string) g.Node { return h.Li(name(line)) })),
		faint("The rules that were in force before still are; after a start, every event goes to every sink. The file is read again when it changes."))
}

func (p *alertPage) firing() g.Node {
	if len(p.List) == 0 {
		return card("now", "Now", nil, empty(g.Text("No alerts.")))
	}
	return card("now", "Now", nil, table([]string{"Severity", "What", "State", "Since (UTC)", ""}, g.Map(p.List, firingRow)))
}

func firingRow(a alert.Status) g.Node {
	silence := "/alerts?" + url.Values{"event": {a.Event}, "vhost": {a.Labels["vhost"]}, "queue": {a.Labels["queue"]}}.Encode() + "#silence"
	return h.Tr(
		h.Td(severity(a.Severity)),
		h.Td(name(a.Summary), h.Br(), faint(a.Alertname)),
		h.Td(g.Text(a.State)),
		h.Td(h.Time(h.Title(format.Instant(a.LastAt)), g.Text(format.Instant(a.StartsAt)))),
		h.Td(h.Class("tight"), g.If(a.State != "silenced", link(silence, g.Text("Silence…")))))
}

func severity(of string) g.Node {
	if of == "critical" {
		return class("tag bad", g.Text(of))
	}
	return class("tag warn", g.Text(of))
}

func (p *alertPage) silences(s *pageInfo) g.Node {
	if len(p.Silences) == 0 {
		return card("silences", "Silences", nil, empty(g.Text("No silences.")))
	}
	return card("silences", "Silences", nil,
		table([]string{"Event", "Virtual host", "Queue", "By", "Comment", "Ends", ""}, g.Map(p.Silences, s.silenced)))
}

// silenced is a row of the silences.
func (s *pageInfo) silenced(m alert.Silence) g.Node {
	or := func(text, otherwise string) g.Node {
		if text == "" {
			return g.Text(otherwise)
		}
		return name(text)
	}
	end := s.change("/silences/end", hidden("id", m.ID), button("End"))
	return h.Tr(
		h.Td(or(m.Event, "all")), h.Td(or(m.VHost, "all")), h.Td(or(m.Queue, "all")), h.Td(or(m.Author, "")), h.Td(or(m.Comment, "")),
		h.Td(h.Time(g.Text(format.Instant(m.ExpiresAt)))),
		h.Td(g.If(s.User.Admin, end)))
}

func (p *alertPage) receivers() g.Node {
	const title = "Where alerts go"
	if len(p.Sinks) == 0 {
		return card("sinks", title, nil, empty(g.Text("Only to the log. Add sinks in "), code("CURFEW_ALERT_URLS"), g.Text(" or in the file of "), code("CURFEW_ALERTS"),
			g.Text(", then test them with "), code("curfew alert test"), g.Text(".")))
	}
	return card("sinks", title, nil, facts(g.Map(p.Sinks, receiver)))
}

func receiver(s alert.SinkStatus) g.Node {
	is := g.Group{class("good", g.Text("works"))}
	if s.Trouble != nil {
		is = g.Group{class("bad", g.Text("failing")), g.Text(" since " + format.Instant(s.Trouble.Since) + ": "), name(s.Trouble.Error)}
	}
	if s.Queued > 0 {
		is = append(is, g.Text(", "+format.Number(s.Queued)+" waiting"))
	}
	return fact(s.Name, is)
}

func (p *alertPage) silenceForm(s *pageInfo) g.Node {
	if !s.User.Admin {
		return card("silence", "Silence alerts", nil, empty(g.Text("Only a user with the tag administrator may silence alerts.")))
	}
	lasts := h.Select(h.Name("for"),
		option("15m", "15 minutes", "1h"), option("1h", "1 hour", "1h"), option("4h", "4 hours", "1h"), option("24h", "a day", "1h"), option("7d", "a week", "1h"))
	return card("silence", "Silence alerts", nil, s.change("/silences", h.Class("filter"),
		choose("event", "Event", "all", p.Events, p.Event),
		field("Virtual host", "vhost", p.VHost, h.Placeholder("all")),
		field("Queue", "queue", p.Queue, h.Placeholder("all; * and ? are wildcards")),
		h.Label(g.Text("For"), lasts),
		h.Label(g.Text("Comment"), h.Input(h.Name("comment"), h.MaxLength("500"))),
		primary("Silence")))
}
