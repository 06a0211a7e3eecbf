package ui

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func rectangle(x, y, width, height int, children ...g.Node) g.Node {
	return g.El("rect", g.Attr("x", strconv.Itoa(x)), g.Attr("y", strconv.Itoa(y)),
		g.Attr("width", strconv.Itoa(width)), g.Attr("height", strconv.Itoa(height)), g.Group(children))
}

// picture is an SVG that is stretched to fill its place.
func picture(width, height int, children ...g.Node) g.Node {
	return h.SVG(g.Attr("viewBox", "0 0 "+strconv.Itoa(width)+" "+strconv.Itoa(height)), g.Attr("preserveAspectRatio", "none"), g.Group(children))
}

// Strip draws a percentage. Screen readers skip it.
func Strip(share int, attributes ...g.Node) g.Node {
	return picture(100, 10, h.Aria("hidden", "true"), rectangle(0, 1, share, 8, attributes...))
}
