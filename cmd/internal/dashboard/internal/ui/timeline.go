package ui

import (
	"fmt"
	"math"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor"
)

// Timeline is the number of pending deadlines over time, and what will become of them.
type Timeline struct {
	Window   string // the span of time
	Inside   int64  // deadlines in the picture
	Later    int64  // deadlines after it
	Held     int64  // deadlines that have passed: consumers hold the messages, or the deadlines are being fired
	Forecast bool   // it is known how many will not be met
	End      int64  // the last instant of the picture, Unix ms

	bars      []bar
	shares    []monitor.Share // by bar
	atRisk    int64           // of Inside, with time left
	nearlyDue int64           // of Inside
	most      int64           // in one bar
	ticks     []string
}

// bar is one bar of a timeline.
type bar struct {
	from, to          int64         // Unix ms, the deadlines after from and up to to
	in, until         time.Duration // from and to, as seen from now
	count             int64
	atRisk, nearlyDue int64 // of count: with time left, and without
}

func (b *bar) safe() int64 { return b.count - b.atRisk - b.nearlyDue }

// windows are the spans of the timeline. Bars and ticks are round, and divide the span. Spans without "offered" are only chosen because they fit.
var windows = []struct {
	name            string
	span, bar, tick time.Duration
	offered         bool
}{
	{"1 min", time.Minute, time.Second, 15 * time.Second, true},
	{"2 min", 2 * time.Minute, 2 * time.Second, 30 * time.Second, false},
	{"5 min", 5 * time.Minute, 5 * time.Second, time.Minute, true},
	{"10 min", 10 * time.Minute, 10 * time.Second, 2 * time.Minute, false},
	{"15 min", 15 * time.Minute, 15 * time.Second, 5 * time.Minute, true},
	{"30 min", 30 * time.Minute, 30 * time.Second, 10 * time.Minute, false},
	{"1 h", time.Hour, time.Minute, 15 * time.Minute, true},
	{"2 h", 2 * time.Hour, 2 * time.Minute, 30 * time.Minute, false},
	{"6 h", 6 * time.Hour, 5 * time.Minute, time.Hour, true},
	{"12 h", 12 * time.Hour, 10 * time.Minute, 3 * time.Hour, false},
	{"24 h", 24 * time.Hour, 30 * time.Minute, 6 * time.Hour, true},
	{"3 d", 3 * 24 * time.Hour, time.Hour, 24 * time.Hour, false},
	{"7 d", 7 * 24 * time.Hour, 3 * time.Hour, 24 * time.Hour, true},
	{"30 d", 30 * 24 * time.Hour, 12 * time.Hour, 5 * 24 * time.Hour, true},
}

// Windows are the names of the windows to choose from, the shortest first: those that are offered, and the present one.
func Windows(present string) (names []string) {
	for i := range windows {
		if windows[i].offered || windows[i].name == present {
			names = append(names, windows[i].name)
		}
	}
	return names
}

// Pending counts deadlines. *monitor.Monitor is one.
type Pending interface {
	// PendingBefore appends how many deadlines there are up to each instant, in Unix ms.
	PendingBefore(until, out []int64) []int64
	// Shares appends the parts of the deadlines between two instants that will not be met; nothing if they are not known.
	Shares(at []int64, out []monitor.Share) []monitor.Share
}

// NewTimeline counts the deadlines from now, Unix ms, to the end of the window of that name. Without such a window it takes the shortest one
// with nine in ten of the deadlines that are pending.
func NewTimeline(of Pending, now, pending int64, window string) *Timeline {
	w := windows[chooseWindow(of, now, pending, window)]
	t := &Timeline{Window: w.name}
	at := make([]int64, 0, w.span/w.bar+1)
	for in := time.Duration(0); in <= w.span; in += w.bar {
		at = append(at, now+in.Milliseconds())
	}
	counts := of.PendingBefore(at, nil)
	shares := of.Shares(at, nil)
	t.Forecast, t.shares = len(shares) > 0, shares
	for i := range len(at) - 1 {
		b := bar{from: at[i], to: at[i+1], in: time.Duration(i) * w.bar, until: time.Duration(i+1) * w.bar, count: max(counts[i+1]-counts[i], 0)}
		if t.Forecast {
			b.nearlyDue = min(int64(math.Round(shares[i].NearlyDue*float64(b.count))), b.count)
			b.atRisk = min(int64(math.Round(shares[i].AtRisk*float64(b.count))), b.count-b.nearlyDue)
		}
		t.most = max(t.most, b.count)
		t.atRisk, t.nearlyDue = t.atRisk+b.atRisk, t.nearlyDue+b.nearlyDue
		t.bars = append(t.bars, b)
	}
	t.End = at[len(at)-1]
	last := counts[len(counts)-1]
	t.Held, t.Inside, t.Later = counts[0], last-counts[0], max(pending-last, 0)
	for in := time.Duration(0); in <= w.span; in += w.tick {
		t.ticks = append(t.ticks, tick(in))
	}
	return t
}

// Agree makes the messages at risk in the bars add up to these sums, which are from the forecast of the queues on the same page. All of them have to
// be inside. The bars' own shares are older and rounded.
func (t *Timeline) Agree(atRisk, nearlyDue int64) {
	if !t.Forecast {
		return
	}
	for i := range t.bars {
		t.bars[i].atRisk, t.bars[i].nearlyDue = 0, 0
	}
	t.nearlyDue = t.spread(nearlyDue, func(s monitor.Share) float64 { return s.NearlyDue }, func(b *bar) *int64 { return &b.nearlyDue })
	t.atRisk = t.spread(atRisk, func(s monitor.Share) float64 { return s.AtRisk }, func(b *bar) *int64 { return &b.atRisk })
}

// spread divides total among the bars, and returns how much of it found room.
func (t *Timeline) spread(total int64, share func(monitor.Share) float64, of func(*bar) *int64) (given int64) {
	all := 0.0
	for i := range t.bars {
		all += share(t.shares[i]) * float64(t.bars[i].count)
	}
	if all == 0 {
		return 0
	}
	due := 0.0
	for i := range t.bars {
		b := &t.bars[i]
		due += share(t.shares[i]) * float64(b.count) * float64(total) / all
		n := min(max(int64(math.Round(due))-given, 0), b.safe())
		*of(b) = n
		given += n
	}
	return given
}

// emptyWindow is the span if nothing is pending.
const emptyWindow = 4

func chooseWindow(of Pending, now, pending int64, wanted string) int {
	until := []int64{now}
	for i, w := range windows {
		if w.name == wanted {
			return i
		}
		until = append(until, now+w.span.Milliseconds())
	}
	counts := of.PendingBefore(until, nil)
	held := counts[0]
	if pending -= held; pending <= 0 {
		return emptyWindow
	}
	for i, n := range counts[1:] {
		if n > held && 10*(n-held) >= 9*pending {
			return i
		}
	}
	return len(windows) - 1
}

func tick(d time.Duration) string {
	if d == 0 {
		return "now"
	}
	return "+" + Span(d)
}

// The picture: a bar has barWidth of barStep units.
const (
	barStep        = 10
	barWidth       = 8
	timelineHeight = 120
)

// BarLink is the URL for a bar: of the deadlines after one instant and up to another, Unix ms. from is 0 for messages that are held.
type BarLink func(from, to int64) string

// Draw shows the bars, their sums and a table. Without a BarLink the bars are not links.
func (t *Timeline) Draw(link BarLink) g.Node { return g.Group{t.chart(link), t.sums(), t.table(link)} }

func (t *Timeline) chart(link BarLink) g.Node {
	line := func(y string) g.Node {
		return g.El("line", h.Class("grid"), g.Attr("x1", "0"), g.Attr("x2", strconv.Itoa(len(t.bars)*barStep)), g.Attr("y1", y), g.Attr("y2", y))
	}
	label := Plural(t.Inside, "deadline") + " in the next " + t.Window + ", at most " + Number(t.most) + " in one bar"
	draw := func(b bar, x int) g.Node { return b.draw(t.most, x, link) }
	bars := make(g.Group, 0, len(t.bars))
	for i, b := range t.bars {
		bars = append(bars, draw(b, i*barStep))
	}
	held := bar{count: t.Held}
	return h.Div(h.Class("chart"),
		h.Span(h.Class("scale"), g.Text(Number(t.most))),
		h.Div(h.Class("lanes"),
			picture(barStep, timelineHeight, h.Class("timeline lane-held"), h.Role("group"), h.Aria("label", Number(t.Held)+" held past their deadline"),
				held.drawHeld(t.most, link)),
			picture(len(t.bars)*barStep, timelineHeight, h.Class("timeline"), h.Role("group"), h.Aria("label", label), line("0.5"), line(strconv.Itoa(timelineHeight/2)), bars)),
		h.Div(h.Class("ticks"), g.Map(t.ticks, func(text string) g.Node { return g.Group{h.Span(g.Text(text)), g.Text(" ")} })))
}

// height is the height of a part of a bar; a part that is not empty can be seen.
func height(n, most int64) int {
	if n <= 0 {
		return 0
	}
	return max(int(math.Round(float64(n)/float64(max(most, 1))*timelineHeight)), 2)
}

func (b *bar) draw(most int64, x int, link BarLink) g.Node {
	if b.count == 0 {
		return nil
	}
	y, parts := timelineHeight, g.Group{}
	for _, part := range []struct {
		n     int64
		class string
	}{{b.nearlyDue, "expires"}, {b.atRisk, "risk"}, {b.safe(), "safe"}} {
		if part.n > 0 {
			tall := min(height(part.n, most), y)
			y -= tall
			parts = append(parts, rectangle(x+1, y, barWidth, tall, h.Class(part.class)))
		}
	}
	return linked(link, b.from, b.to, b.label(), g.Group{rectangle(x, 0, barStep, timelineHeight, h.Class("hit")), parts})
}

func (b *bar) drawHeld(most int64, link BarLink) g.Node {
	if b.count == 0 {
		return nil
	}
	tall := min(height(b.count, most), timelineHeight)
	return linked(link, 0, 0, Plural(b.count, "message")+" held past their deadline",
		g.Group{rectangle(0, 0, barStep, timelineHeight, h.Class("hit")), rectangle(1, timelineHeight-tall, barWidth, tall, h.Class("held"))})
}

// linked makes a part of a picture a link, if link is not nil. With the keyboard, the links of the table are used instead.
func linked(link BarLink, from, to int64, label string, children g.Node) g.Node {
	title := g.El("title", g.Text(label))
	if link == nil {
		return g.El("g", title, children)
	}
	return g.El("a", h.Href(link(from, to)), h.Aria("label", label), h.TabIndex("-1"), title, children)
}

func (b *bar) label() string {
	text := fmt.Sprintf("%s due in %s to %s", Plural(b.count, "message"), Span(b.in), Span(b.until))
	if n := b.atRisk + b.nearlyDue; n > 0 {
		text += ", " + Number(n) + " at risk"
	}
	if b.nearlyDue > 0 {
		text += ", of these " + Number(b.nearlyDue) + " nearly due"
	}
	return text
}

// sums is the legend, with numbers.
func (t *Timeline) sums() g.Node {
	entry := func(is bool, class string, n int64, what string) g.Node {
		if !is {
			return nil
		}
		return h.Span(h.Class("key "+class), Bold(Number(n)), g.Text(" "+what))
	}
	safe := "not at risk"
	if !t.Forecast {
		safe = "due"
	}
	all := t.atRisk == 0 && t.nearlyDue > 0 // that are at risk are nearly due
	return h.P(h.Class("note legend"),
		entry(true, "safe", t.Inside-t.atRisk-t.nearlyDue, safe), g.Text(" "),
		entry(t.Forecast && !all, "risk", t.atRisk+t.nearlyDue, "at risk"), g.Text(" "),
		entry(t.Forecast && !all, "expires", t.nearlyDue, "of these nearly due"), g.Text(" "),
		entry(t.Forecast && all, "expires", t.nearlyDue, "at risk, all nearly due"), g.Text(" "),
		entry(true, "held", t.Held, "held past their deadline"), g.Text(" "),
		h.Span(Bold(Number(t.Inside)), g.Text(" within "+t.Window),
			g.If(t.Later > 0, g.Group{g.Text(" · "), Bold(Number(t.Later)), g.Text(" later")})))
}

// table has the same numbers as text.
func (t *Timeline) table(link BarLink) g.Node {
	rows := g.Group{}
	for _, b := range t.bars {
		if b.count == 0 {
			continue
		}
		when := g.Text(Span(b.in) + " to " + Span(b.until))
		if link != nil {
			when = h.A(h.Href(link(b.from, b.to)), when)
		}
		cells := g.Group{h.Td(when), Amount(OrFaint(b.count))}
		if t.Forecast {
			cells = append(cells, Amount(OrFaint(b.safe())), Amount(OrFaint(b.atRisk+b.nearlyDue)), Amount(OrFaint(b.nearlyDue)))
		}
		rows = append(rows, h.Tr(cells))
	}
	if len(rows) == 0 {
		return nil
	}
	headings := []string{"Due in", "#Deadlines"}
	if t.Forecast {
		headings = append(headings, "#Not at risk", "#At risk", "#Nearly due")
	}
	return AsTable(nil, headings, rows)
}
