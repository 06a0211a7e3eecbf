package overview

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/history"
)

// numbersPath is where the script gets the numbers.
const numbersPath = "/history"

// ranges are the spans to choose from, by the name in the URL. The first is the default.
var ranges = []struct {
	name, label string
	span        time.Duration
}{
	{"15m", "15 min", 15 * time.Minute}, {"1h", "1 h", time.Hour}, {"6h", "6 h", 6 * time.Hour}, {"24h", "24 h", 24 * time.Hour},
}

const (
	chartPoints = 360
	// tableRows is how many rows the table has at most, and markRows how many marks are listed.
	tableRows = 24
	markRows  = 8
	// reach is which part of the span is near an instant, on each side; the script has it, too.
	reach = 48
)

// Trends is the history of a queue, or of all queues, over a span.
type Trends struct {
	Label   string // of the span
	Choices []ui.Choice
	Source  string // of the numbers, for the script
	Read    history.Read
	Traffic bool
	Queue   string // "": all
	Older   int    // marks that are not listed
	At      int64  // the instant that somebody looks at, Unix s; 0: none
	Near    []history.Mark
	asked   url.Values
	path    string
	span    time.Duration
}

// NewTrends reads the history that a page at path shows, over the span that its query names as "range", and what
// changed near the instant that it names as "at". vhost and queue are empty for all queues. It is
// nil without a history.
func NewTrends(h *history.History, path string, q url.Values, vhost, queue string) *Trends {
	if h == nil {
		return nil
	}
	c := &Trends{Traffic: h.Traffic, Queue: queue, asked: q, path: path}
	chosen := ranges[0]
	for _, r := range ranges {
		if r.name == q.Get("range") {
			chosen = r
		}
	}
	for _, r := range ranges {
		one := ui.Choice{Name: r.label}
		if r.name != chosen.name {
			one.URL = ui.With(path, q, "range", r.name)
		}
		c.Choices = append(c.Choices, one)
	}
	ask := url.Values{"span": {chosen.name}, "points": {strconv.Itoa(chartPoints)}}
	if queue != "" {
		ask.Set("vhost", vhost)
		ask.Set("queue", queue)
	}
	c.Source, c.Label = numbersPath+"?"+ask.Encode(), chosen.label
	c.Read = h.Read(history.Request{VHost: vhost, Queue: queue, Span: chosen.span, Points: tableRows, Partial: true})
	c.span = chosen.span
	if at, err := strconv.ParseInt(q.Get("at"), 10, 36); err == nil && at > 0 { // up to the year 3058: in ms it is an int64, and a date for the script
		c.At, c.Near = at, near(c.Read.Marks, at*1000, chosen.span/reach)
	}
	if more := len(c.Read.Marks) - markRows; more > 0 {
		c.Read.Marks, c.Older = c.Read.Marks[more:], more
	}
	return c
}

// near are the marks that are no further away from an instant, in Unix ms, or else the last one before it and the first one after it.
func near(marks []history.Mark, at int64, most time.Duration) (list []history.Mark) {
	from, after := 0, 0 // the first that is near, and the first that is later than those
	for _, m := range marks {
		if m.At < at-most.Milliseconds() {
			from++
		}
		if m.At <= at+most.Milliseconds() {
			after++
		}
	}
	if from == after {
		from, after = max(from-1, 0), min(after+1, len(marks))
	}
	return marks[from:after]
}

// HistoryFiles answers the script.
func HistoryFiles(h *history.History) map[string]ui.Handler {
	if h == nil {
		return nil
	}
	answer := h.Handler()
	return map[string]ui.Handler{numbersPath: func(w http.ResponseWriter, r *http.Request, _ ui.Visitor) { answer.ServeHTTP(w, r) }}
}
