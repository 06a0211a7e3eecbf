package dashboard

import (
	"fmt"
	"math"
	"net/url"
	"time"

	"curfew/monitor"
)

// bar is one of a chart: places and sizes in the units of its picture.
type bar struct {
	X, Y, Width, Height int
	Label               string // for people who point at it, or hear it
	Count               int64
}

// timeline is how many deadlines lie ahead, by when.
type timeline struct {
	Window  string // what it spans, as in the choices
	Choices []choice
	Bars    []bar
	Width   int
	Height  int
	Most    int64    // in one bar
	Ticks   []string // below it, evenly spaced
	Inside  int64    // deadlines in the picture
	Later   int64    // behind it
	Overdue int64    // that have passed: consumers hold the messages, or they are being fired
}

// choice is a link to another view; URL is empty for the one that is shown.
type choice struct {
	Name, URL string
}

const (
	timelineBars   = 60
	timelineHeight = 120
	barStep        = 10
)

// windows are the spans of the timeline.
var windows = []struct {
	name string
	span time.Duration
}{
	{"1 min", time.Minute}, {"15 min", 15 * time.Minute}, {"1 h", time.Hour}, {"6 h", 6 * time.Hour}, {"24 h", 24 * time.Hour}, {"7 d", 7 * 24 * time.Hour},
}

// newTimeline draws what lies ahead of now within the window that the query names; if it
// names none, the least that has most of all deadlines.
func newTimeline(m Monitor, now, pending int64, q url.Values) *timeline {
	i := chooseWindow(m, now, pending, q.Get("ahead"))
	t := &timeline{Window: windows[i].name, Width: timelineBars * barStep, Height: timelineHeight}
	for k, w := range windows {
		c := choice{Name: w.name}
		if k != i {
			c.URL = with("/", q, "ahead", w.name)
		}
		t.Choices = append(t.Choices, c)
	}
	step := windows[i].span.Milliseconds() / timelineBars
	until := make([]int64, timelineBars+1)
	for k := range until {
		until[k] = now + int64(k)*step
	}
	counts := m.Ahead(until, nil)
	t.fill(counts, step)
	t.Overdue, t.Inside = counts[0], counts[timelineBars]-counts[0]
	t.Later = max(pending-counts[timelineBars], 0)
	for k := range 5 {
		t.Ticks = append(t.Ticks, tick(time.Duration(k)*windows[i].span/4))
	}
	return t
}

func chooseWindow(m Monitor, now, pending int64, wanted string) int {
	until := make([]int64, len(windows))
	for i, w := range windows {
		if w.name == wanted {
			return i
		}
		until[i] = now + w.span.Milliseconds()
	}
	for i, n := range m.Ahead(until, nil) {
		if pending > 0 && n > 0 && 10*n >= 9*pending {
			return i
		}
	}
	if pending == 0 {
		return 1
	}
	return len(windows) - 1
}

// fill makes the bars of cumulative counts.
func (t *timeline) fill(counts []int64, stepMillis int64) {
	for k := range timelineBars {
		t.Most = max(t.Most, counts[k+1]-counts[k])
	}
	for k := range timelineBars {
		n := max(counts[k+1]-counts[k], 0)
		b := bar{X: k*barStep + 1, Width: barStep - 2, Count: n}
		if n > 0 {
			b.Height = max(int(math.Round(float64(n)/float64(t.Most)*timelineHeight)), 2)
		}
		b.Y = timelineHeight - b.Height
		from := time.Duration(int64(k)*stepMillis) * time.Millisecond
		b.Label = fmt.Sprintf("%s due in %s to %s", plural(n, "message"), span(from), span(from+time.Duration(stepMillis)*time.Millisecond))
		t.Bars = append(t.Bars, b)
	}
}

func tick(d time.Duration) string {
	if d == 0 {
		return "now"
	}
	return "+" + span(d)
}

// spans are those that the histogram of lateness may be over; 0: all.
var spans = []struct {
	name, label string
	span        time.Duration
}{
	{"5m", "5 min", 5 * time.Minute}, {"1h", "1 h", time.Hour}, {"", "since the start", 0},
}

// lateness is the histogram over the span that the query names.
func lateness(m Monitor, q url.Values) *histogram {
	var choices []choice
	span := time.Duration(0)
	for _, s := range spans {
		c := choice{Name: s.label, URL: with("/", q, "late", s.name)}
		if s.name == q.Get("late") {
			c.URL, span = "", s.span
		}
		choices = append(choices, c)
	}
	l := m.Lateness()
	if span > 0 {
		l = m.LatenessWithin(span)
	}
	h := newHistogram(l)
	h.Choices, h.Span = choices, span
	return h
}

// histogram is how late messages were.
type histogram struct {
	Choices  []choice
	Span     time.Duration // 0: since the start
	Rows     []histogramRow
	Total    uint64
	Half     string // this share left within so much of their deadline
	Most     string // 99 in 100
	Late     uint64 // later than a second
	LateText string
}

type histogramRow struct {
	Label string
	Count uint64
	Width int // of 100; logarithmic, so that few can be seen beside many
	Late  bool
}

// lateAfter is from where the histogram marks messages as late.
const lateAfter = 1000

func newHistogram(l monitor.Lateness) *histogram {
	h := &histogram{Total: l.Total(), Half: within(&l, 0.5), Most: within(&l, 0.99)}
	var most uint64
	for _, n := range l.Counts {
		most = max(most, n)
	}
	for i, n := range l.Counts {
		row := histogramRow{Count: n, Label: "later"}
		if i < len(l.UpTo) {
			row.Label = "≤ " + span(time.Duration(l.UpTo[i])*time.Millisecond)
		}
		row.Late = i > 0 && l.UpTo[i-1] >= lateAfter
		if row.Late {
			h.Late += n
		}
		if n > 0 {
			row.Width = 2 + int(98*math.Log1p(float64(n))/math.Log1p(float64(most)))
		}
		h.Rows = append(h.Rows, row)
	}
	h.trim()
	return h
}

// trim drops rows at the end where nothing is.
func (h *histogram) trim() {
	const least = 6
	for n := len(h.Rows); n > least && h.Rows[n-1].Count == 0; n-- {
		h.Rows = h.Rows[:n-1]
	}
}

func within(l *monitor.Lateness, share float64) string {
	millis, ok := l.Within(share)
	if !ok {
		return ""
	}
	return "≤ " + span(time.Duration(millis)*time.Millisecond)
}
