package dashboard

import (
	"curfew/monitor/dashboard/internal/ui"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// loginForm is the content of the login page.
type loginForm struct{ Name, To, Problem string }

func (f loginForm) Draw(*ui.Info) ui.Drawing {
	return ui.Drawing{Live: h.Form(h.Class("login card"), h.Method("post"), h.Action("/login"),
		h.H1(g.Text("Log in")),
		ui.Problem(f.Problem),
		ui.Hidden("to", f.To),
		ui.Field("User", "name", f.Name, h.AutoComplete("username"), h.Required(), h.AutoFocus()),
		h.Label(g.Text("Password"), h.Input(h.Name("password"), h.Type("password"), h.AutoComplete("current-password"), h.Required())),
		ui.Primary("Log in"),
		h.P(h.Class("faint"), g.Text("A user of the broker with the tag "), ui.Code("monitoring"), g.Text(" or "), ui.Code("administrator"),
			g.Text(". Make one with "), ui.Code("curfew user add"), g.Text(".")),
	)}
}
