package overview

import (
	"net/url"
	"time"

	g "maragu.dev/gomponents"

	"curfew/cmd/internal/dashboard/internal/ui"
)

// timeline is the chart of the deadlines ahead, with links to its other windows.
type timeline struct {
	*ui.Timeline
	Choices []ui.Choice
	Link    ui.BarLink // nil: there is no page of deadlines
}

// newTimeline spans the window that the query names, or a window that fits.
func newTimeline(m Monitor, now, pending int64, q url.Values) *timeline {
	t := &timeline{Timeline: ui.NewTimeline(m, now, pending, q.Get("ahead"))}
	t.Choices = ui.Views("/", q, "", "ahead", t.Window, ui.Or("", ui.Windows(t.Window))...)
	if q.Get("ahead") == t.Window {
		t.Choices = append(t.Choices, ui.Choice{Name: "Auto", URL: ui.With("/", q, "ahead", "")})
	}
	return t
}

// spans are the time spans of the histogram of lateness besides the one since the start.
var spans = map[string]time.Duration{"5m": 5 * time.Minute, "1h": time.Hour}

// histogram is the chart of how late messages were, with links to other time spans.
type histogram struct {
	*ui.Histogram
	Choices []ui.Choice
	Span    time.Duration // 0: since the start
}

// lateness is the histogram of the span that the query names.
func lateness(m Monitor, q url.Values) *histogram {
	h, l := &histogram{Span: spans[q.Get("late")]}, m.Lateness()
	h.Choices = ui.Views("/", q, "", "late", q.Get("late"), "5m", "5 min", "1h", "1 h", "", "since the start")
	if h.Span > 0 {
		l = m.LatenessWithin(h.Span)
	}
	h.Histogram = ui.NewHistogram(l)
	return h
}

func (t *timeline) draw() g.Node {
	if t == nil {
		return nil
	}
	return ui.Card("ahead", "Deadlines ahead", ui.Choices("Span of the deadlines", t.Choices), t.content())
}

func (t *timeline) content() g.Node {
	switch {
	case t.Inside > 0 || t.Held > 0:
		return t.Draw(t.Link)
	case t.Later > 0:
		return ui.Empty(g.Text("Nothing is due within " + t.Window + ", and " + ui.Plural(t.Later, "deadline") + " later. Choose a longer span."))
	}
	return ui.Empty(g.Text("No deadlines ahead. Publish a message with an "), ui.Code("expiration"), g.Text(", or give a queue an "), ui.Code("x-message-ttl"),
		g.Text(" or a policy with "), ui.Code("message-ttl"), g.Text(", and it shows here."))
}
