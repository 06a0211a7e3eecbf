package dashboard

import (
	"strconv"

	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *purgePlan) Draw(s *ui.Info) ui.Drawing {
	back := ui.Link(lettersURL(p.VHost, p.Queue), g.Text("Cancel"))
	path := h.P(h.Class("crumbs"), ui.Link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), ui.Link(lettersURL(p.VHost, p.Queue), ui.Name(p.Queue)))
	if p.Matched == 0 {
		return ui.Drawing{Live: g.Group{path, h.H1(g.Text("There is nothing to delete")), ui.Only(g.Text("No message matches any more. "), back)}}
	}
	n := strconv.Itoa(p.Matched)
	return ui.Drawing{Live: g.Group{
		path,
		h.H1(g.Text("Delete " + format.Plural(p.Matched, "message") + " for good?")),
		g.If(p.Typed != "", h.P(h.Class("problem"), h.Role("alert"), g.Text("Nothing was deleted: the number is not "+format.Visible(p.Typed)+"."))),
		h.Section(h.Class("card"), p.what()),
		s.Change("/dead-letters/purge", h.Class("filter"), ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), p.Filter.fields(),
			ui.Hidden("asked", n), ui.Hidden("position", p.Position.String()),
			h.Label(g.Text("Type "+n+" to delete them"), h.Input(h.Name("confirm"), g.Attr("inputmode", "numeric"), h.AutoComplete("off"), g.Attr("size", "10"), h.Required(), h.AutoFocus())),
			ui.Primary("Delete them"), back),
	}}
}

// what describes the messages to be deleted.
func (p *purgePlan) what() g.Node {
	f := &p.Filter
	entry := func(label, value string) g.Node { return g.If(value != "", ui.Fact(label, ui.Name(value))) }
	return ui.Facts(
		ui.Fact("Queue", ui.Name(p.Queue)), entry("Reason", f.Reason), entry("Died in queue", f.Queue), entry("Published to", f.Exchange),
		entry("Message id", f.MessageID), entry("Body contains", f.Body), g.If(*f == letterFilter{}, ui.Fact("Messages", g.Text("all that are ready now"))))
}
