package alerts

import (
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor/alert"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func (p *page) Draw(s *ui.Info) ui.Drawing {
	top := h.H1(g.Text("Alerts"))
	if !p.On {
		return ui.Drawing{Top: top, Live: ui.Only(g.Text("The monitor is off, so there are no alerts. Set CURFEW_MONITOR=true."))}
	}
	return ui.Drawing{Top: top, Live: g.Group{p.mistakes(), p.firing(), p.silences(s), p.receivers()}, Bottom: p.silenceForm(s)}
}

// mistakes lists the mistakes in the alerts file.
func (p *page) mistakes() g.Node {
	if p.Rules == nil {
		return nil
	}
	lines := strings.Split(p.Rules.Error(), "\n")
	return ui.Card("rules", "The alerts file is not in force", nil,
		h.Ul(g.Map(lines, func(line string) g.Node { return h.Li(ui.Name(line)) })),
		ui.Faint("The previous rules stay in force; after a start, every event goes to every sink. The file is read again when it changes."))
}

func (p *page) firing() g.Node {
	if len(p.Subjects) == 0 {
		return ui.Card("now", "Now", nil, ui.Empty(g.Text("No alerts.")))
	}
	return ui.Card("now", "Now", nil, p.urgent(), h.Div(h.Class("scroll"), h.Table(
		h.THead(h.Tr(g.Map([]string{"Severity", "What", "State", "Since (UTC)", "", ""}, ui.Heading))),
		g.Map(p.Subjects, subject.draw))))
}

// urgent shows where to begin, and what the order of the list means.
func (p *page) urgent() g.Node {
	if p.Urgent == nil {
		return nil
	}
	return h.Div(h.Class("verdict "+ui.RiskClass(p.Urgent.Severity == "critical")),
		h.P(ui.Bold("Most urgent: "), ui.Name(p.Urgent.Summary+". "), g.Text(advice[p.Urgent.Event])),
		h.P(ui.Faint("The most urgent comes first. The order is by severity; then lost messages, missed deadlines, and messages that can still be saved; then by number and age.")))
}

// draw draws a part of the table under its own heading.
func (s subject) draw() g.Node {
	of := g.Group{g.Text("Curfew itself")}
	if s.Queue != "" {
		of = g.Group{ui.Name(s.Queue)}
		if to := s.Alerts[0].Links["queue"]; to != "" {
			of = g.Group{ui.QueueLink(to, s.VHost, s.Queue)}
		}
	}
	return h.TBody(
		h.Tr(h.Class("subject"), h.Th(h.Scope("rowgroup"), h.ColSpan("6"), of)),
		g.Map(s.Alerts, firingRow))
}

func firingRow(a alert.Status) g.Node {
	silence := "/alerts?" + url.Values{"event": {a.Event}, "vhost": {a.Labels["vhost"]}, "queue": {a.Labels["queue"]}}.Encode() + "#silence"
	return h.Tr(
		h.Td(ui.Severity(a.Severity)),
		h.Td(ui.Name(format.Sentence(a.Finding)), h.Br(), ui.Faint(advice[a.Event]+" "), ui.Class("faint hint", g.Text(a.Alertname))),
		h.Td(ui.AlertState(a.Severity, a.State)),
		h.Td(h.Time(h.Title(format.Instant(a.LastAt)), g.Text(format.Instant(a.StartsAt)))),
		h.Td(h.Class("tight"), ui.Spaced(
			ui.Follow("related", a.Links["audit"], "What expired"),
			ui.Follow("related", a.Links["dead_letters"], "Dead letters"),
			g.If(a.Runbook != "", ui.Outside(a.Runbook, "What to do")))),
		h.Td(h.Class("tight"), g.If(a.State != silenced, ui.Link(silence, g.Text("Silence…")))))
}

// advice is what to do about an event, in one sentence or two. The runbooks say more.
var advice = map[string]string{
	"deadline_missed":        "Add consumers or make them faster, or let messages live longer. What was dead-lettered can be replayed.",
	"at_risk":                "Add consumers or make them faster before the first message expires, or give messages more time.",
	"held_past_deadline":     "See what the consumer is doing: messages that it does not ack expire when it gives them back, or when its connection closes.",
	"deadline_fired_late":    "See whether this machine is short of processor time, and whether its disk and Redis are slow.",
	"dead_letter_unroutable": "Declare the dead-letter exchange, or bind a queue to it. Then replay the dead letters.",
	"schedule_degraded":      "Make sure that Redis runs, has memory left and can be reached. Deadlines are still met.",
	"queue_locked_long":      "See whether this machine is short of processor time or memory. If not, keep the log lines that name the operation for a report.",
	"many_alerts":            "Look for one cause of many: a consumer that is gone, a missing dead-letter exchange, a full disk. The others are sent while they fire.",
}

func (p *page) silences(s *ui.Info) g.Node {
	if len(p.Silences) == 0 {
		return ui.Card("silences", "Silences", nil, ui.Empty(g.Text("No silences.")))
	}
	return ui.Card("silences", "Silences", nil,
		ui.Table([]string{"Event", "Virtual host", "Queue", "By", "Comment", "Ends", ""}, g.Map(p.Silences, func(m alert.Silence) g.Node { return silenceRow(s, m) })))
}

// silenceRow is a row of the silences.
func silenceRow(s *ui.Info, m alert.Silence) g.Node {
	or := func(text, otherwise string) g.Node {
		if text == "" {
			return g.Text(otherwise)
		}
		return ui.Name(text)
	}
	end := s.Change("/silences/end", "", ui.Hidden("id", m.ID), ui.Button("End"))
	return h.Tr(
		h.Td(or(m.Event, "all")), h.Td(or(m.VHost, "all")), h.Td(or(m.Queue, "all")), h.Td(or(m.Author, "")), h.Td(or(m.Comment, "")),
		h.Td(h.Time(g.Text(format.Instant(m.ExpiresAt)))),
		h.Td(g.If(s.User.Admin, end)))
}

func (p *page) receivers() g.Node {
	const title = "Where alerts go"
	if len(p.Sinks) == 0 {
		return ui.Card("sinks", title, nil, ui.Empty(g.Text("Only to the log. Add sinks in "), ui.Code("CURFEW_ALERT_URLS"), g.Text(" or in the file of "), ui.Code("CURFEW_ALERTS"),
			g.Text(", then test them with "), ui.Code("curfew alert test"), g.Text(".")))
	}
	return ui.Card("sinks", title, nil, ui.Facts(g.Map(p.Sinks, receiver)))
}

func receiver(s alert.SinkStatus) g.Node {
	is := g.Group{ui.Class("good", g.Text("works"))}
	if s.Trouble != nil {
		is = g.Group{ui.Class("bad", g.Text("failing")), g.Text(" since " + format.Instant(s.Trouble.Since) + ": "), ui.Name(s.Trouble.Error)}
	}
	if s.Queued > 0 {
		is = append(is, g.Text(", "+format.Number(s.Queued)+" waiting"))
	}
	return ui.Fact(s.Name, is)
}

func (p *page) silenceForm(s *ui.Info) g.Node {
	if !s.User.Admin {
		return ui.Card("silence", "Silence alerts", nil, ui.Empty(g.Text("Only a user with the tag administrator may silence alerts.")))
	}
	f := p.Form
	return ui.Card("silence", "Silence alerts", nil, s.Change("/silences", "filter",
		f.Choose("Event", "event", "", ui.Or("all", p.Events)...),
		f.Field("Virtual host", "vhost", "", h.Placeholder("all")),
		f.Field("Queue", "queue", "", h.Placeholder("all; * and ? are wildcards")),
		f.Choose("For", "for", "", "15m", "15 minutes", "1h", "1 hour", "4h", "4 hours", "24h", "a day", "7d", "a week"),
		f.Field("Comment", "comment", "", h.MaxLength("500")),
		ui.Primary("Silence")))
}
