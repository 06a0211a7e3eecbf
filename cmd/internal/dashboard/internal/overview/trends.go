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
}

// NewTrends reads the history that a page at path shows, over the span that its query names as "range". vhost and queue are empty for all queues. It is
// nil without a history.
func NewTrends(h *history.History, path string, q url.Values, vhost, queue string) *Trends {
	if h == nil {
		return nil
	}
	c := &Trends{Traffic: h.Traffic, Queue: queue}
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
	if more := len(c.Read.Marks) - markRows; more > 0 {
		c.Read.Marks, c.Older = c.Read.Marks[more:], more
	}
	return c
}

// HistoryFiles answers the script.
func HistoryFiles(h *history.History) map[string]ui.Handler {
	if h == nil {
		return nil
	}
	answer := h.Handler()
	return map[string]ui.Handler{numbersPath: func(w http.ResponseWriter, r *http.Request, _ ui.Visitor) { answer.ServeHTTP(w, r) }}
}
