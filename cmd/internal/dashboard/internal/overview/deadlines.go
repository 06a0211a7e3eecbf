package overview

import (
	"net/http"
	"strconv"

	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor"
)

const (
	deadlinesPath = "/deadlines"
	// deadlineRows is how many deadlines are listed, and queueRows how many queues: those with the most deadlines.
	deadlineRows = 100
	queueRows    = 200
)

// deadlinesURL is the page of the deadlines after one instant and up to another, Unix ms; from 0: of the deadlines that have passed.
func deadlinesURL(from, to int64) string {
	if from == 0 {
		return deadlinesPath + "?held=1"
	}
	return ui.At(deadlinesPath, "after", strconv.FormatInt(from, 10), "before", strconv.FormatInt(to, 10))
}

// deadlinesPage is what the page of deadlines shows.
type deadlinesPage struct {
	After, Before int64 // Unix ms; 0: no bound
	Held          bool  // those that have passed
	VHost, Queue  string
	Now           int64
	Total         int
	Queues        []queueDeadlines
	MoreQueues    int                 // that are not listed
	List          []messages.Deadline // the first of them
	All           string              // URL with all queues; "" if they are shown
	Refused       bool
}

// queueDeadlines are the deadlines of a queue.
type queueDeadlines struct {
	messages.QueueDeadlines
	Forecast *monitor.Forecast // nil: none
	Only     string            // URL with this queue alone
}

func (d *Pages) deadlines(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	p := &deadlinesPage{Held: q.Get("held") == "1", VHost: q.Get("vhost"), Queue: q.Get("queue"), Now: d.State().NowMillis}
	p.After, _ = strconv.ParseInt(q.Get("after"), 10, 64)
	p.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64)
	if p.Queue != "" {
		p.All = ui.With(deadlinesPath, q, "vhost", "", "queue", "")
	}
	page, err := messages.ListDeadlines.Do(r.Context(), d.Operations.Access, v.Actor(), messages.DeadlineList{
		VHost: p.VHost, Queue: p.Queue, Count: deadlineRows, After: p.After, Before: p.Before, Overdue: p.Held,
	})
	if err != nil {
		return nil, err
	}
	var forecasts map[[2]string]*monitor.Forecast
	if d.Monitor != nil {
		forecasts = monitor.ByQueue(d.Monitor.Forecasts())
	}
	p.Total, p.List, p.MoreQueues = page.Total, page.Items, max(len(page.Queues)-queueRows, 0)
	for _, one := range page.Queues[:len(page.Queues)-p.MoreQueues] {
		p.Queues = append(p.Queues, queueDeadlines{one, forecasts[[2]string{one.VHost, one.Queue}], ui.With(deadlinesPath, q, "vhost", one.VHost, "queue", one.Queue)})
	}
	return p, nil
}
