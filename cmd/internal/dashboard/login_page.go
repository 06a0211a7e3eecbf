package dashboard

import (
	"curfew/cmd/internal/dashboard/internal/ui"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// loginForm is the content of the login page.
type loginForm struct {
	*ui.Form
	To string
}

func (f loginForm) Draw(*ui.Info) ui.Drawing {
	return ui.Drawing{Live: h.Form(h.Class("login card sheet"), h.Method("post"), h.Action("/login"),
		h.H1(g.Text("Log in")),
		f.Problem(),
		ui.Hidden("to", f.To),
		f.Field("User", "name", "", h.AutoComplete("username"), h.Required(), h.AutoFocus()),
		f.Password("Password", "password", "current-password", ""),
		ui.Primary("Log in"),
		h.P(h.Class("faint"), g.Text("A user of the broker with the tag "), ui.Code("monitoring"), g.Text(" or "), ui.Code("administrator"),
			g.Text(". Make one with "), ui.Code("curfew user add"), g.Text(".")),
	)}
}
