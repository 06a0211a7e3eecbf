package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor/audit"
	"curfew/monitor/dashboard/internal/format"
)

func (p *auditPage) draw(*pageInfo) drawing {
	top := h.H1(g.Text("Audit"))
	if !p.On {
		return drawing{top: top, live: only(g.Text("The audit is off: it is kept in the data folder. Set CURFEW_DATA_DIR, and CURFEW_AUDIT=true."))}
	}
	files := h.Span(h.A(href(p.CSV), h.Download(""), g.Text("CSV")), g.Text(" · "), h.A(href(p.JSONL), h.Download(""), g.Text("JSON lines")))
	return drawing{top: g.Group{top, p.Form.draw(p)}, live: card("records", "Expired messages", files,
		g.If(p.TooLong, h.P(h.Class("problem"), g.Text("The search took too long and was ended: choose a queue or a shorter time."))),
		p.found())}
}

func (f *auditForm) draw(p *auditPage) g.Node {
	within := h.Select(h.Name("within"),
		option("", "all time", f.Within), option("1h", "the last hour", f.Within), option("24h", "the last day", f.Within), option("7d", "the last week", f.Within))
	return search("/audit",
		field("Queue", "queue", f.Queue, h.MaxLength("255")),
		field("Virtual host", "vhost", f.VHost, h.Placeholder("all"), h.MaxLength("255")),
		field("Message id", "message_id", f.MessageID, h.MaxLength("255")),
		choose("outcome", "Outcome", "any", p.Outcomes, f.Outcome),
		choose("path", "Path", "any", p.Paths, f.Path),
		h.Label(g.Text("Within"), within),
		field("Lateness at least", "min_lateness", f.Lateness, h.Placeholder("250ms"), g.Attr("size", "8")),
		primary("Search"))
}

func (p *auditPage) found() g.Node {
	switch {
	case len(p.Records) > 0:
		return g.Group{
			table([]string{"When", "Queue", "Message id", "#Lateness", "Path", "Outcome", "To"}, g.Map(p.Records, func(r audit.Record) g.Node { return auditRow(&r) })),
			g.If(p.More, h.P(h.Class("faint"), g.Textf("These are the last %d. For older ones, narrow the search or download the file.", len(p.Records)))),
		}
	case p.Asked:
		return empty(g.Text("No record matches. "), link("/audit", g.Text("Show all")))
	}
	return empty(g.Text("No message has expired yet. When one does, it is recorded here with its lateness and where it went."))
}

func auditRow(r *audit.Record) g.Node {
	at := h.Td(h.Time(g.Text(format.UTC(r.At))))
	if r.Lost > 0 {
		return h.Tr(at, h.Td(h.ColSpan("6"), h.Class("warn"), g.Text(format.Plural(r.Lost, "record")+" before this one could not be kept")))
	}
	id := faint("none")
	if len(r.MessageID) > 0 {
		id = name(string(r.MessageID))
	}
	return h.Tr(at,
		h.Td(queueLink(queueURL(r.VHost, r.Queue), r.VHost, r.Queue)), h.Td(id), amount(g.Text(format.Span(r.Lateness()))),
		h.Td(h.Class("faint"), name(r.Path)), h.Td(outcome(r.Outcome)), h.Td(names(r.To, faint("nowhere"))))
}

// outcome shows what became of a message.
func outcome(of string) g.Node {
	switch of {
	case "dead_lettered":
		return class("tag", g.Text("dead-lettered"))
	case "parked":
		return class("tag warn", g.Text("parked"))
	}
	return class("tag faint", name(of))
}
