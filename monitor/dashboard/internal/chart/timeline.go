package chart

import (
	"fmt"
	"math"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor/dashboard/internal/format"
)

// Timeline is the number of pending deadlines over time.
type Timeline struct {
	Window  string // what it spans, one of Windows
	Inside  int64  // deadlines in the picture
	Later   int64  // after it
	Overdue int64  // that have passed: consumers hold the messages, or they are being fired
	bars    []bar
	most    int64    // in one bar
	ticks   []string // below it, evenly spaced
}

// bar is one bar of a timeline, with its position and size in the units of the picture.
type bar struct {
	x, y, width, height int
	label               string // shown on hover and read aloud
	count               int64
}

const (
	timelineBars   = 60
	barStep        = 10
	timelineWidth  = timelineBars * barStep
	timelineHeight = 120
)

// windows are the spans of the timeline.
var windows = []struct {
	name string
	span time.Duration
}{
	{"1 min", time.Minute}, {"15 min", 15 * time.Minute}, {"1 h", time.Hour}, {"6 h", 6 * time.Hour}, {"24 h", 24 * time.Hour}, {"7 d", 7 * 24 * time.Hour},
}

// Windows are the names of what a timeline can span, the shortest first.
func Windows() []string {
	names := make([]string, len(windows))
	for i := range windows {
		names[i] = windows[i].name
	}
	return names
}

// NewTimeline counts the deadlines from now to the end of the window of that name. Without such a window it takes the shortest one
// with nine in ten of the deadlines. ahead counts the deadlines up to each instant, as monitor.Monitor.Ahead does.
func NewTimeline(ahead func(until, out []int64) []int64, now, pending int64, window string) *Timeline {
	w := windows[chooseWindow(ahead, now, pending, window)]
	t := &Timeline{Window: w.name}
	step := w.span.Milliseconds() / timelineBars
	until := make([]int64, timelineBars+1)
	for k := range until {
		until[k] = now + int64(k)*step
	}
	counts := ahead(until, nil)
	t.fill(counts, step)
	t.Overdue, t.Inside = counts[0], counts[timelineBars]-counts[0]
	t.Later = max(pending-counts[timelineBars], 0)
	for k := range 5 {
		t.ticks = append(t.ticks, tick(time.Duration(k)*w.span/4))
	}
	return t
}

func chooseWindow(ahead func(until, out []int64) []int64, now, pending int64, wanted string) int {
	until := make([]int64, len(windows))
	for i, w := range windows {
		if w.name == wanted {
			return i
		}
		until[i] = now + w.span.Milliseconds()
	}
	for i, n := range ahead(until, nil) {
		if pending > 0 && n > 0 && 10*n >= 9*pending {
			return i
		}
	}
	if pending == 0 {
		return 1
	}
	return len(windows) - 1
}

// fill makes the bars from cumulative counts.
func (t *Timeline) fill(counts []int64, stepMillis int64) {
	for k := range timelineBars {
		t.most = max(t.most, counts[k+1]-counts[k])
	}
	for k := range timelineBars {
		n := max(counts[k+1]-counts[k], 0)
		b := bar{x: k*barStep + 1, width: barStep - 2, count: n}
		if n > 0 {
			b.height = max(int(math.Round(float64(n)/float64(t.most)*timelineHeight)), 2)
		}
		b.y = timelineHeight - b.height
		from := time.Duration(int64(k)*stepMillis) * time.Millisecond
		b.label = fmt.Sprintf("%s due in %s to %s", format.Plural(n, "message"), format.Span(from), format.Span(from+time.Duration(stepMillis)*time.Millisecond))
		t.bars = append(t.bars, b)
	}
}

func tick(d time.Duration) string {
	if d == 0 {
		return "now"
	}
	return "+" + format.Span(d)
}

// Draw shows the bars and their sums.
func (t *Timeline) Draw() g.Node { return g.Group{t.chart(), t.sums()} }

func (t *Timeline) chart() g.Node {
	line := func(y string) g.Node {
		return g.El("line", h.Class("grid"), g.Attr("x1", "0"), g.Attr("x2", strconv.Itoa(timelineWidth)), g.Attr("y1", y), g.Attr("y2", y))
	}
	label := format.Plural(t.Inside, "deadline") + " in the next " + t.Window + ", at most " + format.Number(t.most) + " in one bar"
	return h.Div(h.Class("chart"),
		h.Span(h.Class("scale"), g.Text(format.Number(t.most))),
		picture(timelineWidth, timelineHeight, h.Class("timeline"), h.Role("img"), h.Aria("label", label),
			line("0.5"), line(strconv.Itoa(timelineHeight/2)),
			g.Map(t.bars, bar.draw)),
		h.Div(h.Class("ticks"), g.Map(t.ticks, func(text string) g.Node { return g.Group{h.Span(g.Text(text)), g.Text(" ")} })))
}

func (b bar) draw() g.Node {
	if b.count == 0 {
		return nil
	}
	return rectangle(b.x, b.y, b.width, b.height, g.El("title", g.Text(b.label)))
}

func (t *Timeline) sums() g.Node {
	return h.P(h.Class("note"), bold(format.Number(t.Inside)), g.Text(" within "+t.Window),
		g.If(t.Later > 0, g.Group{g.Text(" · "), bold(format.Number(t.Later)), g.Text(" later")}),
		g.If(t.Overdue > 0, g.Group{g.Text(" · "), h.Span(h.Class("warn"), bold(format.Number(t.Overdue)), g.Text(" past their deadline, held by consumers"))}))
}
