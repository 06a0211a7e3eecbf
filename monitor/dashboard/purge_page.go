package dashboard

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *purgePlan) draw(s *shown) drawing {
	back := link(lettersURL(p.VHost, p.Queue), g.Text("Do not"))
	path := h.P(h.Class("crumbs"), link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), link(lettersURL(p.VHost, p.Queue), name(p.Queue)))
	if p.Matched == 0 {
		return drawing{live: g.Group{path, h.H1(g.Text("There is nothing to delete")), only(g.Text("No message fits any more. "), back)}}
	}
	n := strconv.Itoa(p.Matched)
	return drawing{live: g.Group{
		path,
		h.H1(g.Text("Delete " + plural(p.Matched, "message") + " for good?")),
		g.If(p.Typed != "" && p.Typed != n, h.P(h.Class("problem"), h.Role("alert"), g.Text("Nothing was deleted: "+visible(p.Typed)+" is not how many they are now."))),
		h.Section(h.Class("card"), p.what()),
		s.change("/dead-letters/purge", h.Class("filter"), hidden("vhost", p.VHost), hidden("name", p.Queue), p.Filter.fields(),
			h.Label(g.Text("Type "+n+" to delete them"), h.Input(h.Name("confirm"), g.Attr("inputmode", "numeric"), h.AutoComplete("off"), g.Attr("size", "10"), h.Required(), h.AutoFocus())),
			primary("Delete them"), back),
	}}
}

// what names what is to be deleted.
func (p *purgePlan) what() g.Node {
	f := &p.Filter
	entry := func(label, value string) g.Node { return g.If(value != "", fact(label, name(value))) }
	return facts(
		fact("Queue", name(p.Queue)), entry("Why", f.Reason), entry("Died in queue", f.Queue), entry("Published to", f.Exchange),
		entry("Message id", f.MessageID), entry("Body contains", f.Body), g.If(*f == LetterFilter{}, fact("Which", g.Text("all that are ready"))))
}
