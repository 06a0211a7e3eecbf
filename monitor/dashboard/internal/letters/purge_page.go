package letters

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func (p *purgePlan) Draw(s *ui.Info) ui.Drawing {
	back, path := ui.Link(URL(p.VHost, p.Queue), g.Text("Cancel")), crumbs(p.VHost, p.Queue)
	if p.Matched == 0 {
		return ui.Drawing{Live: g.Group{path, h.H1(g.Text("There is nothing to delete")), ui.Only(g.Text("No message matches now. "), ui.Link(URL(p.VHost, p.Queue), g.Text("Back")))}}
	}
	n := strconv.Itoa(p.Matched)
	return ui.Drawing{Live: g.Group{
		path,
		h.H1(g.Text("Delete " + format.Plural(p.Matched, "message") + " for good?")),
		h.Section(h.Class("card"), ui.Facts(ui.Fact("Queue", ui.Name(p.Queue)), queryFacts(p.Query), g.If(len(p.Query) == 0, ui.Fact("Messages", g.Text("all that are ready now"))))),
		h.Section(h.Class("card"), s.Sheet(purgePath, p.Form, g.Group{
			ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), queryFields(p.fixed()), ui.Hidden("asked", n), ui.Hidden("position", p.Position.String()),
			p.Form.Typed(n),
		}, ui.Danger("Delete them"), back)),
	}}
}
