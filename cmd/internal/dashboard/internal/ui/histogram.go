package ui

import (
	"math"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/monitor"
)

// Histogram is how late messages were.
type Histogram struct {
	Total uint64
	Most  string // 99 in 100 left their queue at most this long after their deadline
	All   string // none left its queue later after its deadline
	half  string // half left at most this long after it
	above string // lateness above every bound, in words
	late  uint64
	rows  []histogramRow
}

type histogramRow struct {
	label string
	count uint64
	width int // of 100; logarithmic, so that small counts can be seen next to large ones
	late  bool
}

// NewHistogram returns the histogram of l.
func NewHistogram(l monitor.Lateness) *Histogram {
	h := &Histogram{Total: l.Total(), half: within(&l, 0.5), Most: within(&l, 0.99), All: within(&l, 1)}
	var most uint64
	for _, n := range l.Counts {
		most = max(most, n)
	}
	if n := len(l.UpTo); n > 0 {
		h.above = "more than " + Millis(l.UpTo[n-1])
	}
	if h.All == "" && h.Total > 0 {
		h.All = h.above
	}
	for i, n := range l.Counts {
		row := histogramRow{count: n, label: "later"}
		if i < len(l.UpTo) {
			row.label = "≤ " + Millis(l.UpTo[i])
		}
		if row.late = l.IsLate(i); row.late {
			h.late += n
		}
		if n > 0 {
			row.width = 2 + int(98*math.Log1p(float64(n))/math.Log1p(float64(most)))
		}
		h.rows = append(h.rows, row)
	}
	const least = 6
	for n := len(h.rows); n > least && h.rows[n-1].count == 0; n-- { // empty rows at the end
		h.rows = h.rows[:n-1]
	}
	return h
}

func within(l *monitor.Lateness, share float64) string {
	millis, ok := l.Within(share)
	if !ok {
		return ""
	}
	return "≤ " + Span(time.Duration(millis)*time.Millisecond)
}

// Draw shows the histogram; over describes its time span.
func (l *Histogram) Draw(over string) g.Node {
	or := func(text string) g.Node {
		if text == "" {
			return Bold(l.above)
		}
		return Bold(text)
	}
	return g.Group{
		h.P(h.Class("note"), Bold(Plural(l.Total, "message")), g.Text(" "+over+". Half left their queue "), or(l.half), g.Text(" after their deadline, 99 in 100 "), or(l.Most), g.Text(", all "), or(l.All), g.Text("."),
			g.If(l.late > 0, g.Group{g.Text(" "), h.Span(h.Class("bad"), g.Text(Plural(l.late, "message")+" expired more than "+Span(deadline.LateAfter)+" late."))})),
		h.Table(h.Class("bars"), h.TBody(g.Map(l.rows, histogramRow.draw))),
		h.P(h.Class("faint"), g.Text("The scale is logarithmic.")),
	}
}

func (r histogramRow) draw() g.Node {
	count := h.Span(h.Class("faint"), g.Text("0"))
	if r.count > 0 {
		count = g.Text(Number(r.count))
	}
	return h.Tr(h.Th(h.Scope("row"), g.Text(r.label)), h.Td(Strip(r.width, g.If(r.late, h.Class("late")))), h.Td(h.Class("number"), count))
}
