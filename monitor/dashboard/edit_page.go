package dashboard

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *editPage) draw(s *shown) drawing {
	top := g.Group{
		h.P(h.Class("crumbs"), link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), link(lettersURL(p.VHost, p.Queue), name(p.Queue)), g.Text(" · virtual host "), name(p.VHost)),
		h.H1(g.Text("Change a dead letter and replay it")),
	}
	switch {
	case p.Refused:
		return drawing{top: append(top, only(g.Text("This user may not read the queue: ask for the permission to read it.")))}
	case !s.User.Admin:
		return drawing{top: append(top, only(g.Text("Replaying takes a user with the tag administrator.")))}
	case p.TooLarge:
		return drawing{top: append(top, only(g.Text("The body has more than "+byteCount(maxEdited)+": download the message, change the file and import it.")))}
	}
	return drawing{top: append(top, p.form(s))}
}

func (p *editPage) form(s *shown) g.Node {
	body := "Body"
	if p.Form == coded {
		body = "Body, in base64, as it is no text"
	}
	return h.Section(h.Class("card"), s.change(editPath, h.Class("edit"),
		hidden("vhost", p.VHost), hidden("name", p.Queue), hidden("seq", strconv.FormatUint(p.Seq, 10)),
		hidden("queue", strconv.FormatUint(p.Draft.Queue, 10)), hidden("form", p.Form),
		field("Exchange", "exchange", p.Draft.Exchange, h.MaxLength("255"), h.Placeholder("the default exchange")),
		field("Routing key", "routing_key", p.Draft.RoutingKey, h.MaxLength("255")),
		area("Properties and headers, as in an exported file", "properties", p.Draft.Properties),
		area(body, "body", p.Text),
		h.P(h.Class("faint"), g.Text("It leaves this queue only when another has it, and begins a new history there.")),
		h.P(h.Class("pager"), spaced(primary("Replay it like this"), link(lettersURL(p.VHost, p.Queue), g.Text("Do not"))))))
}

// area is a field of several lines. The line break at its beginning is none of its text.
func area(label, name, text string) g.Node {
	return h.Label(g.Text(label), h.Textarea(h.Name(name), h.Rows("10"), g.Attr("spellcheck", "false"), g.Text("\n"+text)))
}
