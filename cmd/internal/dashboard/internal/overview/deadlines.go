package overview

import (
	"net/http"
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/incident"
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
	Queues        []messages.QueueDeadlines
	MoreQueues    int                 // that are not listed
	List          []messages.Deadline // the first of them
	asked         url.Values
	forecasts     map[incident.QueueName]*deadline.Forecast
}

func (d *Pages) deadlines(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	p := &deadlinesPage{Held: q.Get("held") == "1", VHost: q.Get("vhost"), Queue: q.Get("queue"), Now: d.State().NowMillis, asked: q}
	p.After, _ = strconv.ParseInt(q.Get("after"), 10, 64)
	p.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64)
	page, err := messages.ListDeadlines.Do(r.Context(), d.Operations, v.Actor, messages.DeadlineList{
		VHost: p.VHost, Queue: p.Queue, Count: deadlineRows, After: p.After, Before: p.Before, Overdue: p.Held,
	})
	if err != nil {
		return nil, err
	}
	p.forecasts = incident.ByQueue(d.Incidents.View().Forecasts)
	p.Total, p.List, p.MoreQueues = page.Total, page.Items, max(len(page.Queues)-queueRows, 0)
	p.Queues = page.Queues[:len(page.Queues)-p.MoreQueues]
	return func(*ui.Info) ui.Drawing {
		return ui.Drawing{
			Top:    g.Group{h.P(h.Class("crumbs"), ui.Link("/", g.Text("Overview")), g.Text(" · deadlines ahead")), h.H1(g.Text(p.heading()))},
			Bottom: p.content(),
		}
	}, nil
}

func (p *deadlinesPage) heading() string {
	text := ui.Plural(p.Total, "deadline")
	if p.Queue != "" {
		text += " in " + ui.Visible(p.Queue)
	}
	switch {
	case p.Held:
		return text + " passed, their messages held by consumers"
	case p.After != 0 && p.Before != 0:
		return text + " from " + ui.Clock(p.After) + " to " + ui.Clock(p.Before) + " UTC"
	case p.Before != 0:
		return text + " up to " + ui.Clock(p.Before) + " UTC"
	}
	return text
}

func (p *deadlinesPage) content() g.Node {
	if p.Total == 0 {
		return ui.Only(g.Text("No message has such a deadline now: those that had one were consumed or have expired. "), ui.Link("/", g.Text("Back to the deadlines ahead")))
	}
	return g.Group{p.queues(), p.list()}
}

func (p *deadlinesPage) queues() g.Node {
	var all g.Node
	if p.Queue != "" {
		all = ui.Link(ui.With(deadlinesPath, p.asked, "vhost", "", "queue", ""), g.Text("All queues"))
	}
	return ui.Card("queues", "By queue", all, g.Group{
		ui.Table([]string{"Queue", "#Deadlines", "#First", "Forecast for the queue", ""}, g.Map(p.Queues, p.queue)),
		g.If(p.MoreQueues > 0, h.P(h.Class("note"), g.Text("And "+ui.Plural(p.MoreQueues, "more queue")+"."))),
	})
}

func (p *deadlinesPage) queue(q messages.QueueDeadlines) g.Node {
	vhost, name := q.VHost, q.Queue
	return h.Tr(
		h.Td(ui.QueueLink(ui.QueueURL(vhost, name), vhost, name)),
		ui.Amount(g.Text(ui.Number(q.Count))), ui.Amount(g.Text(ui.Until(q.First, p.Now))), h.Td(forecastOf(p.forecasts[incident.QueueName{VHost: vhost, Name: name}])),
		h.Td(h.Class("tight"), g.If(p.Queue == "" && len(p.Queues) > 1, ui.Link(ui.With(deadlinesPath, p.asked, "vhost", vhost, "queue", name), g.Text("Only these")))))
}

// forecastOf shows what will become of a queue's messages.
func forecastOf(f *deadline.Forecast) g.Node {
	switch {
	case f == nil || f.AtRisk+f.AsMeant == 0:
		return ui.Class("good", g.Text("consumed in time"))
	case f.AsMeant > 0:
		return g.Text(ui.Number(f.AsMeant) + " of " + ui.Number(f.Deadlines) + " expire as meant")
	}
	return g.Group{ui.AtRisk(f), g.Text(" of " + ui.Number(f.Deadlines) + " at risk")}
}

func (p *deadlinesPage) list() g.Node {
	note := "The earliest first."
	if p.Total > len(p.List) {
		note = "The first " + ui.Number(len(p.List)) + "."
	}
	return ui.Card("list", "Messages", ui.Faint(note),
		ui.Table([]string{"Due (UTC)", "", "Queue", "Message id", "Routing key", "State", ""}, g.Map(p.List, p.row)))
}

func (p *deadlinesPage) row(d messages.Deadline) g.Node {
	state := g.Text("ready")
	switch {
	case d.State != "ready" && d.Overdue:
		state = ui.Class("warn", g.Text("held by a consumer"))
	case d.State != "ready":
		state = g.Text("with a consumer")
	}
	change := ui.DeadlineURL(d.VHost, d.Queue, d.QueueID, operate.Seq(d.Seq))
	id := ui.NameOr(d.MessageID, ui.Faint("none"))
	return h.Tr(
		h.Td(h.Time(h.Title(ui.UTC(d.Deadline)), g.Text(ui.Clock(d.Deadline)))), h.Td(h.Class("tight faint"), g.Text(ui.Until(d.Deadline, p.Now))),
		h.Td(ui.QueueLink(ui.QueueURL(d.VHost, d.Queue), d.VHost, d.Queue)), h.Td(id), h.Td(ui.NameOr(d.RoutingKey, nil)),
		h.Td(state), h.Td(h.Class("tight"), ui.Link(change, g.Text("Change…"))))
}
