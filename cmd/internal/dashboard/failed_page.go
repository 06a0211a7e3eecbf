package dashboard

import (
	"cmp"
	"net/http"

	"curfew/cmd/internal/dashboard/internal/ui"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// sessionOver answers a form from a user who is no longer logged in. The form can be sent again: its token is the user's.
type sessionOver struct{}

func (sessionOver) Draw(*ui.Info) ui.Drawing {
	return ui.Drawing{Live: h.Section(h.Class("card empty"), h.Role("alert"),
		h.H1(g.Text("Log in again")),
		h.P(g.Text("Your session has ended, and nothing was done. "), h.A(h.Href("/login"), h.Target("_blank"), g.Text("Log in again in another tab")),
			g.Text(", then reload this page: your form is sent again as it was.")))}
}

// failure is the content of the page about an error.
type failure struct {
	status int // HTTP
	text   string
}

func (f failure) Draw(*ui.Info) ui.Drawing {
	heading := map[int]string{http.StatusNotFound: "Not here", http.StatusForbidden: "Not allowed"}[f.status]
	return ui.Drawing{Live: h.Section(h.Class("card empty"), h.Role("alert"),
		h.H1(g.Text(cmp.Or(heading, "Something went wrong"))),
		h.P(ui.Name(f.text)),
		h.P(ui.Link("/", g.Text("Back to the overview"))))}
}
