package ui

import (
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

const sparkHeight = 24

// sparkLeast is the least number of values that a sparkline spans: that of a new queue leaves out the time before.
const sparkLeast = 10

// Sparkline draws values, evenly spaced, the oldest first. A negative value is unknown. over names the values, such as "depth in the last
// hour". The result is nil if no value is known.
func Sparkline(values []int64, over string) g.Node {
	var most, last int64 = 0, -1
	for _, v := range values {
		most = max(most, v)
		if v >= 0 {
			last = v
		}
	}
	if last < 0 {
		return nil
	}
	for len(values) > sparkLeast && values[0] < 0 {
		values = values[1:]
	}
	var line strings.Builder
	for i, v := range values {
		if v < 0 {
			continue
		}
		step := byte('L')
		if i == 0 || values[i-1] < 0 {
			step = 'M'
		}
		line.WriteByte(step)
		line.WriteString(strconv.Itoa(i))
		line.WriteByte(' ')
		line.WriteString(strconv.Itoa(sparkHeight - 1 - int(v*(sparkHeight-2)/max(most, 1))))
		if step == 'M' && (i == len(values)-1 || values[i+1] < 0) { // alone, it is a dash
			line.WriteString("h1")
		}
	}
	label := over + ": at most " + Number(most) + ", now " + Number(last)
	return picture(len(values), sparkHeight, h.Class("spark"), h.Role("img"), h.Aria("label", label),
		g.El("title", g.Text(label)), g.El("path", g.Attr("d", line.String())))
}

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
