package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"curfew/monitor"
)

// pageRows is how many queues one page lists.
const pageRows = 50

// queueList is what the page of queues shows.
type queueList struct {
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

// queueRow is a queue with what is expected of it.
type queueRow struct {
	Queue
	Forecast *monitor.Forecast // nil: no deadlines wait there
}

// column is one that can be sorted by.
type column struct {
	Name, Key, URL string
	Sorted         string // ascending, descending or ""
	Number         bool
}

// orders are the comparisons of columns; what is equal goes by name.
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

func (d *Dashboard) queues(r *http.Request, _ visitor) (view, error) {
	v := r.URL.Query()
	l := &queueList{Filter: v.Get("q"), VHost: v.Get("vhost"), Sort: v.Get("sort"), Descending: v.Get("desc") == "1"}
	if orders[l.Sort] == nil {
		l.Sort = "name"
	}
	l.gather(d.Broker.Queues(), d.forecasts())
	l.page(v)
	l.columns(v)
	return l, nil
}

// forecasts are those of queues by virtual host and name.
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

// gather takes the queues that are wanted, in the order that is wanted.
func (l *queueList) gather(all []Queue, forecasts map[[2]string]*monitor.Forecast) {
	l.All = len(all)
	filter := strings.ToLower(l.Filter)
	for _, q := range all {
		if !slices.Contains(l.VHosts, q.VHost) {
			l.VHosts = append(l.VHosts, q.VHost)
		}
		if strings.Contains(strings.ToLower(q.Name), filter) && (l.VHost == "" || l.VHost == q.VHost) {
			l.Rows = append(l.Rows, queueRow{q, forecasts[[2]string{q.VHost, q.Name}]})
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
func (l *queueList) page(v url.Values) {
	last := max((l.Found-1)/pageRows, 0)
	n, err := strconv.Atoi(v.Get("page"))
	if err != nil {
		n = 1
	}
	at := min(max(n-1, 0), last)
	from, to := at*pageRows, min((at+1)*pageRows, l.Found)
	l.Rows, l.From, l.To = l.Rows[from:to], from+1, to
	if at > 0 {
		l.Before = with("/queues", v, "page", strconv.Itoa(at))
	}
	if at < last {
		l.After = with("/queues", v, "page", strconv.Itoa(at+2))
	}
}

// columns makes the links that sort: a second click turns the order round, numbers begin
// with the largest.
func (l *queueList) columns(v url.Values) {
	for _, c := range []column{
		{Name: "Queue", Key: "name"}, {Name: "Ready", Key: "ready", Number: true}, {Name: "Unacked", Key: "unacked", Number: true},
		{Name: "Consumers", Key: "consumers", Number: true}, {Name: "Deadlines", Key: "deadlines", Number: true}, {Name: "Will miss", Key: "miss", Number: true},
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
		c.URL = with("/queues", v, "sort", c.Key, "desc", direction, "page", "")
		l.Columns = append(l.Columns, c)
	}
}

// with is a path whose query is v, but for the given names and values; an empty value
// leaves a name out.
func with(path string, v url.Values, changes ...string) string {
	changed := url.Values{}
	for name, values := range v {
		changed[name] = values
	}
	for i := 0; i < len(changes); i += 2 {
		changed.Del(changes[i])
		if changes[i+1] != "" {
			changed.Set(changes[i], changes[i+1])
		}
	}
	if len(changed) == 0 {
		return path
	}
	return path + "?" + changed.Encode()
}
