package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/chart"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func (p *letterPage) Draw(s *ui.Info) ui.Drawing {
	top := g.Group{ui.Crumbs("/dead-letters", "Dead letters", p.VHost), h.H1(ui.Name(p.Queue))}
	if p.Refused {
		return ui.Drawing{Top: append(top, ui.Only(g.Text("This user may not read the queue: ask for the permission to read it.")))}
	}
	return ui.Drawing{Top: append(top,
		g.If(p.Done != "", h.P(h.Class("done"), h.Role("status"), g.Text(p.Done))),
		g.If(p.TooLong, h.P(h.Class("problem"), g.Text("The search took too long and was ended, so this page does not show everything. Use "), ui.Code("curfew dlq"), g.Text(", which has no time limit."))),
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
		all = ui.Link(lettersURL(p.VHost, p.Queue), g.Text("Show all"))
	}
	return ui.Card("groups", "By cause", all, h.Div(h.Class("scroll"), h.Table(
		h.THead(h.Tr(h.Th(g.Text("Reason")), h.Th(g.Text("In queue")), h.Th(g.Text("Published to")), ui.Heading("#Messages"), h.Th(h.Class("share")), h.Th(g.Text("Oldest")), h.Th(g.Text("Newest")))),
		h.TBody(g.Map(p.Groups, letterGroup.draw)))))
}

func (l letterGroup) draw() g.Node {
	why, exchange := "never died", ui.Faint("default exchange")
	if l.Reason != "" {
		why = format.Visible(l.Reason)
	}
	if l.Exchange != "" {
		exchange = ui.Name(l.Exchange)
	}
	return h.Tr(
		h.Td(ui.Link(l.URL, g.Text(why))), h.Td(g.If(l.Queue != "", ui.Name(l.Queue))), h.Td(exchange), ui.Amount(g.Text(format.Number(l.Messages))),
		h.Td(h.Class("share"), chart.Strip(l.Share)),
		h.Td(ui.Ago(l.Oldest)), h.Td(ui.Ago(l.Newest)))
}

func (p *letterPage) form() g.Node {
	bodies := ""
	if p.Bodies {
		bodies = "1"
	}
	return ui.Search("/dead-letter",
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.HiddenIf("bodies", bodies),
		ui.Choose("reason", "Reason", "any", p.Reasons, p.Filter.Reason),
		ui.Field("Died in queue", "died_in", p.Filter.Queue, h.MaxLength("255")),
		ui.Field("Published to", "exchange", p.Filter.Exchange, h.MaxLength("255"), h.Placeholder("any exchange")),
		ui.Field("Message id", "message_id", p.Filter.MessageID, h.MaxLength("255")),
		ui.Field("Body contains", "body", p.Filter.Body, h.MaxLength("256")),
		ui.Button("Search"))
}

func (p *letterPage) found() g.Node {
	title, toggle := "Messages", "Show bodies"
	if p.Filtered {
		title = "Matching messages"
	}
	if p.Bodies {
		toggle = "Hide bodies"
	}
	return ui.Card("found", title, ui.Choices("View", nil, ui.Link(p.Toggle, g.Text(toggle))), p.list())
}

func (p *letterPage) list() g.Node {
	switch {
	case len(p.Letters) == 0 && p.Filtered:
		return ui.Empty(g.Text("No message matches. "), ui.Link(lettersURL(p.VHost, p.Queue), g.Text("Show all")))
	case len(p.Letters) == 0:
		return ui.Empty(g.Text("The queue is empty: no dead letters."))
	}
	return g.Group{
		h.P(h.Class("faint"), g.Text("Looking changes nothing. As of "+format.UTC(p.Now)+".")),
		h.Ol(h.Class("messages"), g.Map(p.Letters, letterView.draw)),
		h.P(h.Class("pager"), ui.Spaced(ui.Follow("first", p.First, "← First"), ui.Follow("next", p.After, "After →"))),
	}
}

func (l letterView) draw() g.Node {
	return h.Li(
		h.Div(h.Class("message"), ui.Spaced(
			ui.Class("grow", l.died()),
			ui.Class("tags", l.tags()),
			ui.Class("when", l.when()),
			g.If(l.Edit != "", ui.Link(l.Edit, g.Text("Change and replay…"))),
			ui.Class("size", g.Text(format.Bytes(int64(l.BodyBytes)))))),
		ui.Details("Properties, headers and history",
			ui.Fact("routing key", ui.Name(l.RoutingKey)), ui.Pairs(l.Properties), ui.Pairs(l.Headers), g.Map(l.Deaths, drawDeath)),
		l.body("Body"))
}

func (l *letterView) died() g.Node {
	if l.Last == nil {
		return ui.Faint("never died")
	}
	to := "the default exchange"
	if l.Last.Exchange != "" {
		to = format.Visible(l.Last.Exchange)
	}
	return g.Group{ui.Class("what", ui.Name(l.Last.Reason)), g.Text(" in "), ui.Name(l.Last.Queue), g.Text(" "), ui.Faint("published to " + to)}
}

func (l *letterView) when() g.Node {
	if l.Last == nil || l.Last.Time.IsZero() {
		return nil
	}
	return ui.Ago(l.Last.Time)
}

func (l *letterView) tags() g.Node {
	var tags []g.Node
	if l.Last != nil && l.Last.Count > 1 {
		tags = append(tags, ui.Class("tag warn", g.Text(format.Number(l.Last.Count)+" times")))
	}
	if l.Replays > 0 {
		tags = append(tags, ui.Class("tag", g.Text("replayed "+format.Number(l.Replays)+"×")))
	}
	if l.Unacked {
		tags = append(tags, ui.Class("tag warn", g.Text("unacked")))
	}
	return ui.Spaced(tags...)
}

func drawDeath(d deadletters.Death) g.Node {
	first := ""
	if !d.Time.IsZero() {
		first = ", first " + format.Instant(d.Time)
	}
	return ui.Fact("died", ui.Name(d.Reason), g.Text(" in "), ui.Name(d.Queue), g.Text(", "+format.Number(d.Count)+"×"+first))
}

// fields are the hidden fields of a filter.
func (f *letterFilter) fields() g.Node {
	return g.Group{ui.Hidden("reason", f.Reason), ui.Hidden("died_in", f.Queue), ui.Hidden("exchange", f.Exchange), ui.Hidden("message_id", f.MessageID), ui.Hidden("body", f.Body)}
}

func (p *letterPage) replay(s *ui.Info) g.Node {
	title := "Replay all"
	if p.Filtered {
		title = "Replay matching messages"
	}
	if !p.May.replay {
		return ui.Card("replay", title, nil, ui.Empty(g.Text("This user may not replay.")))
	}
	return ui.Card("replay", title, nil,
		s.Change("/dead-letters/replay", h.Class("filter"), ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), p.Filter.fields(),
			h.Label(g.Text("To"), h.Select(h.Name("to"), ui.Option("origin", "where it was published to", ""), ui.Option("queue", "the queue it died in", ""))),
			h.Label(g.Text("Time to live"), h.Select(h.Name("ttl"),
				ui.Option("fresh", "as when published, from now", ""), ui.Option("remaining", "what is left of it", ""), ui.Option("none", "only that of its queue", ""))),
			h.Label(g.Text("At most"), h.Input(h.Name("limit"), g.Attr("inputmode", "numeric"), g.Attr("size", "8"), h.Placeholder("all"))),
			h.Label(g.Text("Per second"), h.Input(h.Name("rate"), g.Attr("inputmode", "decimal"), g.Attr("size", "8"), h.Placeholder("no limit"))),
			h.Label(h.Class("inline"), h.Input(h.Type("checkbox"), h.Name("keep_deaths"), h.Value("1")), g.Text(" Keep the death history")),
			ui.Button("Try it first…")),
		h.P(h.Class("faint"), g.Text("A dry run comes first, and nothing moves before you have confirmed it. A message leaves this queue only when another one has it.")))
}

func (p *letterPage) files(s *ui.Info) g.Node {
	if !p.May.fill && len(p.Letters) == 0 {
		return nil
	}
	what := "Download all"
	if p.Filtered {
		what = "Download matching messages"
	}
	return ui.Card("files", "Files", nil,
		g.If(len(p.Letters) > 0, h.P(h.A(ui.Href(p.Export), h.Download("dead-letters.jsonl"), g.Text(what)), g.Text(" as JSON lines, which people can read and change. The messages stay here."))),
		g.If(p.May.fill, h.Form(h.Class("filter"), h.Method("post"), h.Action(importPath), h.EncType("multipart/form-data"),
			ui.Hidden("token", s.Token), ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), // before the file, which is read as it comes
			h.Label(g.Text("An exported file, at most "+format.Bytes(maxUpload)), h.Input(h.Type("file"), h.Name("file"), h.Accept(".jsonl,.json,.txt"), h.Required())),
			ui.Button("Import into this queue"))))
}

func (p *letterPage) purge(s *ui.Info) g.Node {
	title := "Delete all"
	if p.Filtered {
		title = "Delete matching messages"
	}
	return ui.Card("purge", title, nil,
		s.Change("/dead-letters/purge", h.Class("filter"), ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), p.Filter.fields(), ui.Button("Delete…")),
		h.P(h.Class("faint"), g.Text("Nothing is deleted before you have typed the number of messages.")))
}
