package dashboard

import (
	"strconv"

	"curfew/monitor/dashboard/internal/format"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *purgePlan) draw(s *pageInfo) drawing {
	back := link(lettersURL(p.VHost, p.Queue), g.Text("Cancel"))
	path := h.P(h.Class("crumbs"), link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), link(lettersURL(p.VHost, p.Queue), name(p.Queue)))
	if p.Matched == 0 {
		return drawing{live: g.Group{path, h.H1(g.Text("There is nothing to delete")), only(g.Text("No message matches any more. "), back)}}
	}
	n := strconv.Itoa(p.Matched)
	return drawing{live: g.Group{
		path,
		h.H1(g.Text("Delete " + format.Plural(p.Matched, "message") + " for good?")),
		g.If(p.Typed != "", h.P(h.Class("problem"), h.Role("alert"), g.Text("Nothing was deleted: the number is not "+format.Visible(p.Typed)+"."))),
		h.Section(h.Class("card"), p.what()),
		s.change("/dead-letters/purge", h.Class("filter"), hidden("vhost", p.VHost), hidden("name", p.Queue), p.Filter.fields(),
			hidden("asked", n), hidden("position", p.Position.String()),
			h.Label(g.Text("Type "+n+" to delete them"), h.Input(h.Name("confirm"), g.Attr("inputmode", "numeric"), h.AutoComplete("off"), g.Attr("size", "10"), h.Required(), h.AutoFocus())),
			primary("Delete them"), back),
	}}
}

// what describes the messages to be deleted.
func (p *purgePlan) what() g.Node {
	f := &p.Filter
	entry := func(label, value string) g.Node { return g.If(value != "", fact(label, name(value))) }
	return facts(
		fact("Queue", name(p.Queue)), entry("Reason", f.Reason), entry("Died in queue", f.Queue), entry("Published to", f.Exchange),
		entry("Message id", f.MessageID), entry("Body contains", f.Body), g.If(*f == letterFilter{}, fact("Messages", g.Text("all that are ready now"))))
}
