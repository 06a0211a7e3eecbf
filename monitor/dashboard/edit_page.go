package dashboard

import (
	"strconv"

	"curfew/monitor/dashboard/internal/format"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *editPage) draw(s *pageInfo) drawing {
	top := g.Group{
		h.P(h.Class("crumbs"), link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), link(lettersURL(p.VHost, p.Queue), name(p.Queue)), g.Text(" · virtual host "), name(p.VHost)),
		h.H1(g.Text("Change a dead letter and replay it")),
	}
	switch {
	case p.Refused:
		return drawing{top: append(top, only(g.Text("This user may not read the queue: ask for the permission to read it.")))}
	case !p.Allowed:
		return drawing{top: append(top, only(g.Text("This user may not replay.")))}
	case p.TooLarge:
		return drawing{top: append(top, only(g.Text("The body is larger than "+format.Bytes(maxEdited)+": download the message, change the file and import it.")))}
	}
	return drawing{top: append(top, p.form(s))}
}

func (p *editPage) form(s *pageInfo) g.Node {
	body := "Body"
	if p.Form == coded {
		body = "Body, in base64 because it is not text"
	}
	return h.Section(h.Class("card"), s.change(editPath, h.Class("edit"),
		hidden("vhost", p.VHost), hidden("name", p.Queue), hidden("seq", strconv.FormatUint(p.Seq, 10)),
		hidden("queue", strconv.FormatUint(p.Draft.QueueID, 10)), hidden("form", p.Form),
		field("Exchange", "exchange", p.Draft.Exchange, h.MaxLength("255"), h.Placeholder("the default exchange")),
		field("Routing key", "routing_key", p.Draft.RoutingKey, h.MaxLength("255")),
		area("Properties and headers, as in an exported file", "properties", string(p.Draft.Properties)),
		area(body, "body", p.Text),
		h.P(h.Class("faint"), g.Text("The message leaves this queue only when another one has it. Its history begins again there.")),
		h.P(h.Class("pager"), spaced(primary("Replay the changed message"), link(lettersURL(p.VHost, p.Queue), g.Text("Cancel"))))))
}

// area is a field of several lines. Browsers drop a line break at its beginning.
func area(label, name, text string) g.Node {
	return h.Label(g.Text(label), h.Textarea(h.Name(name), h.Rows("10"), g.Attr("spellcheck", "false"), g.Text("\n"+text)))
}
