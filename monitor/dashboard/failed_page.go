package dashboard

import (
	"curfew/monitor/dashboard/internal/ui"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// failure is the content of the page about an error.
type failure string

func (f failure) Draw(*ui.Info) ui.Drawing {
	return ui.Drawing{Live: h.Section(h.Class("card empty"), h.Role("alert"),
		h.H1(g.Text("Something went wrong")),
		h.P(ui.Name(string(f))),
		h.P(ui.Link("/", g.Text("Back to the overview"))))}
}
