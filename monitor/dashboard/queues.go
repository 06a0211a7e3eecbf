package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/operate"
	"curfew/monitor"
	"curfew/monitor/dashboard/internal/ui"
)

// pageRows is how many queues one page lists.
const pageRows = 50

// sparkMinutes is how far back a queue's line goes.
const sparkMinutes = 60

// queuesPage is what the page of queues shows.
type queuesPage struct {
	Filter, VHost string
	Sort          string
	Descending    bool
	VHosts        []string
	Rows          []queueRow
	All, Found    int
	From, To      int // of Found, counted from 1
	Before, After string
	Columns       []column
}

// queueRow is a queue with its forecast.
type queueRow struct {
	operate.Queue
	Forecast *monitor.Forecast // nil: no deadlines wait there
	Depths   []int64           // in the last hour, by the minute; nil: not known
}

// listQueues are all queues; none without a broker.
func (d *Dashboard) listQueues(r *http.Request, v ui.Visitor) ([]operate.Queue, error) {
	if d.Operations == nil {
		return nil, nil
	}
	return d.Operations.ListQueues(r.Context(), v.Actor())
}

// deadLettersTo is, in words, where a queue's dead letters go; "" for nowhere.
func deadLettersTo(q *operate.Queue) string {
	exchange, key := q.DeadLetterExchange, q.DeadLetterKey
	switch {
	case !q.DeadLetters:
		return ""
	case exchange == "" && key != "":
		return key
	case exchange == "":
		return "the queue named by each message's key"
	case key == "":
		return "exchange " + exchange
	}
	return "exchange " + exchange + " with key " + key
}

// column is one that can be sorted by.
type column struct {
	Name, Key, URL string
	Sorted         string // ascending, descending or ""
	Number         bool
	Roomy          bool // not on a narrow screen
}

// orders compares queues by column. Equal ones are sorted by name.
var orders = map[string]func(a, b *queueRow) int{
	"name":      func(a, b *queueRow) int { return 0 },
	"ready":     func(a, b *queueRow) int { return cmp.Compare(a.Ready, b.Ready) },
	"unacked":   func(a, b *queueRow) int { return cmp.Compare(a.Unacked, b.Unacked) },
	"consumers": func(a, b *queueRow) int { return cmp.Compare(a.Consumers, b.Consumers) },
	"deadlines": func(a, b *queueRow) int { return cmp.Compare(a.deadlines(), b.deadlines()) },
	"miss":      func(a, b *queueRow) int { return cmp.Compare(a.willMiss(), b.willMiss()) },
}

func (q *queueRow) deadlines() int {
	if q.Forecast == nil {
		return 0
	}
	return q.Forecast.Deadlines
}

func (q *queueRow) willMiss() int {
	if q.Forecast == nil {
		return 0
	}
	return q.Forecast.WillMiss
}

func (d *Dashboard) queues(r *http.Request, by ui.Visitor) (ui.View, error) {
	v := r.URL.Query()
	l := &queuesPage{Filter: v.Get("q"), VHost: v.Get("vhost"), Sort: v.Get("sort"), Descending: v.Get("desc") == "1"}
	if orders[l.Sort] == nil {
		l.Sort = "name"
	}
	all, err := d.listQueues(r, by)
	if err != nil {
		return nil, err
	}
	l.gather(all, d.forecasts())
	l.page(v)
	l.columns(v)
	if d.History != nil {
		for i := range l.Rows {
			l.Rows[i].Depths = d.History.Depths(l.Rows[i].VHost, l.Rows[i].Name, sparkMinutes)
		}
	}
	return l, nil
}

// forecasts are the forecasts by virtual host and name of the queue.
func (d *Dashboard) forecasts() map[[2]string]*monitor.Forecast {
	if d.Monitor == nil {
		return nil
	}
	all := d.Monitor.Forecasts()
	by := make(map[[2]string]*monitor.Forecast, len(all))
	for i := range all {
		by[[2]string{all[i].VHost, all[i].Queue}] = &all[i]
	}
	return by
}

// gather takes the matching queues, in the chosen order.
func (l *queuesPage) gather(all []operate.Queue, forecasts map[[2]string]*monitor.Forecast) {
	l.All = len(all)
	filter := strings.ToLower(l.Filter)
	for _, q := range all {
		if !slices.Contains(l.VHosts, q.VHost) {
			l.VHosts = append(l.VHosts, q.VHost)
		}
		if strings.Contains(strings.ToLower(q.Name), filter) && (l.VHost == "" || l.VHost == q.VHost) {
			l.Rows = append(l.Rows, queueRow{Queue: q, Forecast: forecasts[[2]string{q.VHost, q.Name}]})
		}
	}
	slices.Sort(l.VHosts)
	slices.SortFunc(l.Rows, func(a, b queueRow) int {
		order, names := orders[l.Sort](&a, &b), cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.VHost, b.VHost))
		if l.Descending {
			order = -order
			if l.Sort == "name" {
				names = -names
			}
		}
		return cmp.Or(order, names)
	})
	l.Found = len(l.Rows)
}

// page cuts out the rows of one page.
func (l *queuesPage) page(v url.Values) {
	last := max((l.Found-1)/pageRows, 0)
	n, err := strconv.Atoi(v.Get("page"))
	if err != nil {
		n = 1
	}
	at := min(max(n-1, 0), last)
	from, to := at*pageRows, min((at+1)*pageRows, l.Found)
	l.Rows, l.From, l.To = l.Rows[from:to], from+1, to
	if at > 0 {
		l.Before = ui.With("/queues", v, "page", strconv.Itoa(at))
	}
	if at < last {
		l.After = ui.With("/queues", v, "page", strconv.Itoa(at+2))
	}
}

// columns makes the links that sort. A second click reverses the order; numbers begin with the
// largest.
func (l *queuesPage) columns(v url.Values) {
	for _, c := range []column{
		{Name: "Queue", Key: "name"}, {Name: "Ready", Key: "ready", Number: true}, {Name: "Unacked", Key: "unacked", Number: true, Roomy: true},
		{Name: "Consumers", Key: "consumers", Number: true, Roomy: true}, {Name: "Deadlines", Key: "deadlines", Number: true, Roomy: true}, {Name: "At risk", Key: "miss", Number: true},
	} {
		descending := c.Number
		if c.Key == l.Sort {
			c.Sorted, descending = "ascending", !l.Descending
			if l.Descending {
				c.Sorted = "descending"
			}
		}
		direction := "0"
		if descending {
			direction = "1"
		}
		c.URL = ui.With("/queues", v, "sort", c.Key, "desc", direction, "page", "")
		l.Columns = append(l.Columns, c)
	}
}
