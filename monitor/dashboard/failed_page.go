package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// failure says what did not work.
type failure string

func (f failure) draw(*shown) drawing {
	return drawing{live: h.Section(h.Class("card empty"), h.Role("alert"),
		h.H1(g.Text("That did not work")),
		h.P(name(string(f))),
		h.P(link("/", g.Text("Back to the overview"))))}
}
