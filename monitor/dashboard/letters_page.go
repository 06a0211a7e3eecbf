package dashboard

import (
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/chart"
	"curfew/monitor/dashboard/internal/format"
)

func (p *letterPage) draw(s *pageInfo) drawing {
	top := g.Group{crumbs("/dead-letters", "Dead letters", p.VHost), h.H1(name(p.Queue))}
	if p.Refused {
		return drawing{top: append(top, only(g.Text("This user may not read the queue: ask for the permission to read it.")))}
	}
	return drawing{top: append(top,
		g.If(p.Done != "", h.P(h.Class("done"), h.Role("status"), g.Text(p.Done))),
		g.If(p.TooLong, h.P(h.Class("problem"), g.Text("The search took too long and was ended, so this page does not show everything. Use "), code("curfew dlq"), g.Text(", which has no time limit."))),
		g.If(len(p.Groups) > 0, p.groups()),
		p.form(),
		p.found(),
		g.If(len(p.Letters) > 0, p.replay(s)),
		p.files(s),
		g.If(len(p.Letters) > 0 && p.May.purge, p.purge(s)))}
}

func (p *letterPage) groups() g.Node {
	var all g.Node
	if p.Filtered {
		all = link(lettersURL(p.VHost, p.Queue), g.Text("Show all"))
	}
	return card("groups", "By cause", all, h.Div(h.Class("scroll"), h.Table(
		h.THead(h.Tr(h.Th(g.Text("Reason")), h.Th(g.Text("In queue")), h.Th(g.Text("Published to")), heading("#Messages"), h.Th(h.Class("share")), h.Th(g.Text("Oldest")), h.Th(g.Text("Newest")))),
		h.TBody(g.Map(p.Groups, letterGroup.draw)))))
}

func (l letterGroup) draw() g.Node {
	why, exchange := "never died", faint("default exchange")
	if l.Reason != "" {
		why = format.Visible(l.Reason)
	}
	if l.Exchange != "" {
		exchange = name(l.Exchange)
	}
	return h.Tr(
		h.Td(link(l.URL, g.Text(why))), h.Td(g.If(l.Queue != "", name(l.Queue))), h.Td(exchange), amount(g.Text(format.Number(l.Messages))),
		h.Td(h.Class("share"), chart.Strip(l.Share)),
		h.Td(ago(l.Oldest)), h.Td(ago(l.Newest)))
}

// ago shows how long ago t was; the zero time is unknown.
func ago(t time.Time) g.Node {
	if t.IsZero() {
		return faint("–")
	}
	return h.Time(h.Title(format.Instant(t)), g.Text(format.Since(t)+" ago"))
}

func (p *letterPage) form() g.Node {
	bodies := ""
	if p.Bodies {
		bodies = "1"
	}
	return search("/dead-letter",
		hidden("vhost", p.VHost), hidden("name", p.Queue), hiddenIf("bodies", bodies),
		choose("reason", "Reason", "any", p.Reasons, p.Filter.Reason),
		field("Died in queue", "died_in", p.Filter.Queue, h.MaxLength("255")),
		field("Published to", "exchange", p.Filter.Exchange, h.MaxLength("255"), h.Placeholder("any exchange")),
		field("Message id", "message_id", p.Filter.MessageID, h.MaxLength("255")),
		field("Body contains", "body", p.Filter.Body, h.MaxLength("256")),
		button("Search"))
}

func (p *letterPage) found() g.Node {
	title, toggle := "Messages", "Show bodies"
	if p.Filtered {
		title = "Matching messages"
	}
	if p.Bodies {
		toggle = "Hide bodies"
	}
	return card("found", title, choices("View", nil, link(p.Toggle, g.Text(toggle))), p.list())
}

func (p *letterPage) list() g.Node {
	switch {
	case len(p.Letters) == 0 && p.Filtered:
		return empty(g.Text("No message matches. "), link(lettersURL(p.VHost, p.Queue), g.Text("Show all")))
	case len(p.Letters) == 0:
		return empty(g.Text("The queue is empty: no dead letters."))
	}
	return g.Group{
		h.P(h.Class("faint"), g.Text("Looking changes nothing. As of "+format.UTC(p.Now)+".")),
		h.Ol(h.Class("messages"), g.Map(p.Letters, letterView.draw)),
		h.P(h.Class("pager"), spaced(follow("first", p.First, "← First"), follow("next", p.After, "After →"))),
	}
}

func (l letterView) draw() g.Node {
	return h.Li(
		h.Div(h.Class("message"), spaced(
			class("grow", l.died()),
			class("tags", l.tags()),
			class("when", l.when()),
			g.If(l.Edit != "", link(l.Edit, g.Text("Change and replay…"))),
			class("size", g.Text(format.Bytes(int64(l.BodyBytes)))))),
		details("Properties, headers and history",
			fact("routing key", name(l.RoutingKey)), pairs(l.Properties), pairs(l.Headers), g.Map(l.Deaths, drawDeath)),
		l.body("Body"))
}

func (l *letterView) died() g.Node {
	if l.Last == nil {
		return faint("never died")
	}
	to := "the default exchange"
	if l.Last.Exchange != "" {
		to = format.Visible(l.Last.Exchange)
	}
	return g.Group{class("what", name(l.Last.Reason)), g.Text(" in "), name(l.Last.Queue), g.Text(" "), faint("published to " + to)}
}

func (l *letterView) when() g.Node {
	if l.Last == nil || l.Last.Time.IsZero() {
		return nil
	}
	return ago(l.Last.Time)
}

func (l *letterView) tags() g.Node {
	var tags []g.Node
	if l.Last != nil && l.Last.Count > 1 {
		tags = append(tags, class("tag warn", g.Text(format.Number(l.Last.Count)+" times")))
	}
	if l.Replays > 0 {
		tags = append(tags, class("tag", g.Text("replayed "+format.Number(l.Replays)+"×")))
	}
	if l.Unacked {
		tags = append(tags, class("tag warn", g.Text("unacked")))
	}
	return spaced(tags...)
}

func drawDeath(d deadletters.Death) g.Node {
	first := ""
	if !d.Time.IsZero() {
		first = ", first " + format.Instant(d.Time)
	}
	return fact("died", name(d.Reason), g.Text(" in "), name(d.Queue), g.Text(", "+format.Number(d.Count)+"×"+first))
}

// fields are the hidden fields of a filter.
func (f *letterFilter) fields() g.Node {
	return g.Group{hidden("reason", f.Reason), hidden("died_in", f.Queue), hidden("exchange", f.Exchange), hidden("message_id", f.MessageID), hidden("body", f.Body)}
}

func (p *letterPage) replay(s *pageInfo) g.Node {
	title := "Replay all"
	if p.Filtered {
		title = "Replay matching messages"
	}
	if !p.May.replay {
		return card("replay", title, nil, empty(g.Text("This user may not replay.")))
	}
	return card("replay", title, nil,
		s.change("/dead-letters/replay", h.Class("filter"), hidden("vhost", p.VHost), hidden("name", p.Queue), p.Filter.fields(),
			h.Label(g.Text("To"), h.Select(h.Name("to"), option("origin", "where it was published to", ""), option("queue", "the queue it died in", ""))),
			h.Label(g.Text("Time to live"), h.Select(h.Name("ttl"),
				option("fresh", "as when published, from now", ""), option("remaining", "what is left of it", ""), option("none", "only that of its queue", ""))),
			h.Label(g.Text("At most"), h.Input(h.Name("limit"), g.Attr("inputmode", "numeric"), g.Attr("size", "8"), h.Placeholder("all"))),
			h.Label(g.Text("Per second"), h.Input(h.Name("rate"), g.Attr("inputmode", "decimal"), g.Attr("size", "8"), h.Placeholder("no limit"))),
			h.Label(h.Class("inline"), h.Input(h.Type("checkbox"), h.Name("keep_deaths"), h.Value("1")), g.Text(" Keep the death history")),
			button("Try it first…")),
		h.P(h.Class("faint"), g.Text("A dry run comes first, and nothing moves before you have confirmed it. A message leaves this queue only when another one has it.")))
}

func (p *letterPage) files(s *pageInfo) g.Node {
	if !p.May.fill && len(p.Letters) == 0 {
		return nil
	}
	what := "Download all"
	if p.Filtered {
		what = "Download matching messages"
	}
	return card("files", "Files", nil,
		g.If(len(p.Letters) > 0, h.P(h.A(href(p.Export), h.Download("dead-letters.jsonl"), g.Text(what)), g.Text(" as JSON lines, which people can read and change. The messages stay here."))),
		g.If(p.May.fill, h.Form(h.Class("filter"), h.Method("post"), h.Action(importPath), h.EncType("multipart/form-data"),
			hidden("token", s.Token), hidden("vhost", p.VHost), hidden("name", p.Queue), // before the file, which is read as it comes
			h.Label(g.Text("An exported file, at most "+format.Bytes(maxUpload)), h.Input(h.Type("file"), h.Name("file"), h.Accept(".jsonl,.json,.txt"), h.Required())),
			button("Import into this queue"))))
}

func (p *letterPage) purge(s *pageInfo) g.Node {
	title := "Delete all"
	if p.Filtered {
		title = "Delete matching messages"
	}
	return card("purge", title, nil,
		s.change("/dead-letters/purge", h.Class("filter"), hidden("vhost", p.VHost), hidden("name", p.Queue), p.Filter.fields(), button("Delete…")),
		h.P(h.Class("faint"), g.Text("Nothing is deleted before you have typed the number of messages.")))
}
