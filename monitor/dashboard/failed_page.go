package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// failure is the content of the page about an error.
type failure string

func (f failure) draw(*pageInfo) drawing {
	return drawing{live: h.Section(h.Class("card empty"), h.Role("alert"),
		h.H1(g.Text("Something went wrong")),
		h.P(name(string(f))),
		h.P(link("/", g.Text("Back to the overview"))))}
}
