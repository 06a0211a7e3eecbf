package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// loginForm is the content of the login page.
type loginForm struct{ Name, To, Problem string }

func (f loginForm) draw(*pageInfo) drawing {
	return drawing{live: h.Form(h.Class("login card"), h.Method("post"), h.Action("/login"),
		h.H1(g.Text("Log in")),
		g.If(f.Problem != "", h.P(h.Class("problem"), h.Role("alert"), g.Text(f.Problem))),
		hidden("to", f.To),
		field("User", "name", f.Name, h.AutoComplete("username"), h.Required(), h.AutoFocus()),
		h.Label(g.Text("Password"), h.Input(h.Name("password"), h.Type("password"), h.AutoComplete("current-password"), h.Required())),
		primary("Log in"),
		h.P(h.Class("faint"), g.Text("A user of the broker with the tag "), code("monitoring"), g.Text(" or "), code("administrator"),
			g.Text(". Make one with "), code("curfew user add"), g.Text(".")),
	)}
}
