package dashboard

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/topology"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/incident"
)

// sparkMinutes is how far back a queue's line goes.
const sparkMinutes = 60

// queuesPage is what the page of queues shows.
type queuesPage struct {
	Form       *ui.Form // the search
	Sort       string
	Descending bool
	VHosts     []string
	Rows       []queueRow
	All        int
	Cut        ui.Cut
	asked      url.Values
}

// queueRow is a queue with its forecast.
type queueRow struct {
	*operate.Queue
	operate.Losses
	Forecast *deadline.Forecast
	Holders  []operate.Consumer
	Depths   []int64 // in the last hour, by the minute; nil: not known
	In, Out  operate.Rate
	Wrong    incident.Concern
}

// deadLettersTo is where the dead letters of a queue go that has a dead-letter exchange, which may be missing.
func deadLettersTo(q *operate.Queue) g.Node {
	exchange, key := q.DeadLetterExchange, q.DeadLetterKey
	switch {
	case exchange == "" && key != "":
		return ui.Link(ui.QueueURL(q.VHost, key), ui.Name(key))
	case exchange == "":
		return g.Text("the queue named by each message's key")
	case key != "":
		key = " with key " + key
	}
	return g.Group{ui.Name("exchange " + exchange + key), g.If(q.ExchangeMissing, g.Group{g.Text(" "), ui.Class("tag warn", g.Text("does not exist"))})}
}

// column is a column to sort by.
type column struct {
	Name, Key string
	Number    bool
}

// orders compares queues by column, or by risk. Queues that are equal are sorted by name.
var orders = map[string]func(a, b queueRow) int{
	"risk": func(a, b queueRow) int {
		return (&incident.Standing{Level: a.Wrong.Level, Place: a.Wrong.Place, Forecast: a.Forecast, Lost: a.Lost, Rescued: a.Rescued}).Compare(
			&incident.Standing{Level: b.Wrong.Level, Place: b.Wrong.Place, Forecast: b.Forecast, Lost: b.Lost, Rescued: b.Rescued})
	},
	"name":      func(_, _ queueRow) int { return 0 },
	"ready":     func(a, b queueRow) int { return cmp.Compare(a.Ready, b.Ready) },
	"unacked":   func(a, b queueRow) int { return cmp.Compare(a.Unacked, b.Unacked) },
	"consumers": func(a, b queueRow) int { return cmp.Compare(a.Consumers, b.Consumers) },
	"oldest":    func(a, b queueRow) int { return cmp.Compare(a.OldestAge, b.OldestAge) },
	"purpose":   func(a, b queueRow) int { return cmp.Compare(a.Queue.Purpose, b.Queue.Purpose) },
	"deadlines": func(a, b queueRow) int { return cmp.Compare(a.Forecast.Deadlines, b.Forecast.Deadlines) },
	"lost":      func(a, b queueRow) int { return a.Losses.Compare(b.Losses) },
	"in":        func(a, b queueRow) int { return cmp.Compare(a.In.PerSecond, b.In.PerSecond) },
	"out":       func(a, b queueRow) int { return cmp.Compare(a.Out.PerSecond, b.Out.PerSecond) },
	"miss":      func(a, b queueRow) int { return cmp.Compare(a.Forecast.AtRisk, b.Forecast.AtRisk) },
}

func (d *Dashboard) queues(r *http.Request, by ui.Visitor) (ui.View, error) {
	v := r.URL.Query()
	l := &queuesPage{Form: ui.NewForm(v), asked: v, Sort: v.Get("sort"), Descending: v.Get("desc") == "1"}
	if orders[l.Sort] == nil {
		l.Sort = "risk"
	}
	if !v.Has("desc") || v.Has("of") && v.Get("of") != l.Sort {
		l.Descending = slices.ContainsFunc(sortable, func(c column) bool { return c.Key == l.Sort && c.Number })
	}
	all, err := d.Operations.ListQueues(r.Context(), by.Actor)
	if err != nil {
		return nil, err
	}
	l.gather(all, d.Incidents.View())
	rates := d.Operations.Rates
	rates.Refresh()
	for i := range l.Rows {
		l.Rows[i].In, l.Rows[i].Out = rates.Flow(l.Rows[i].Queue)
	}
	slices.SortFunc(l.Rows, l.compare)
	l.Rows, l.Cut = ui.CutOf(l.Rows, "/queues", v, "page")
	holders, err := operate.Holders(d.Operations, by.Actor, operate.QueueName{VHost: v.Get("vhost")})
	if err != nil {
		return nil, err
	}
	of := map[uint64][]operate.Consumer{}
	for i := range holders {
		id := holders[i].Queue.ID
		of[id] = append(of[id], holders[i])
	}
	for i := range l.Rows {
		q := &l.Rows[i]
		q.Holders = of[q.ID]
		if d.History != nil {
			q.Depths = d.History.Depths(q.VHost, q.Name, sparkMinutes)
		}
	}
	return func(*ui.Info) ui.Drawing {
		menu := ui.Menu("Actions", ui.Action("/queue/new", "New queue…"), ui.Action("/publish", "Publish…"))
		mayChange := operate.MayChange(d.Operations, by.Actor, "") // something in some virtual host
		return ui.Drawing{Top: g.Group{h.H1(g.Text("Queues")), g.If(mayChange, menu), l.form()}, Live: h.Section(h.Class("card"), l.list())}
	}, nil
}

// forecast is that of a queue; nil: no deadlines wait there. It must not be changed.
func (d *Dashboard) forecast(vhost, queue string) *deadline.Forecast {
	all := d.Incidents.View().Forecasts
	for i := range all {
		if all[i].VHost == vhost && all[i].Queue == queue {
			return &all[i]
		}
	}
	return nil
}

// gather takes the matching queues, with their forecasts and what is wrong already.
func (l *queuesPage) gather(all []*operate.Queue, seen *incident.View) {
	l.All = len(all)
	filter, vhost, purpose, vhosts := strings.ToLower(l.Form.Get("q")), l.Form.Get("vhost"), l.Form.Get("purpose"), map[string]bool{}
	forecasts, none := incident.ByQueue(seen.Forecasts), &deadline.Forecast{}
	for _, q := range all {
		vhosts[q.VHost] = true
		if strings.Contains(strings.ToLower(q.Name), filter) && (vhost == "" || vhost == q.VHost) && (purpose == "" || purpose == q.Purpose.String()) {
			name := incident.QueueName{VHost: q.VHost, Name: q.Name}
			l.Rows = append(l.Rows, queueRow{Queue: q, Losses: q.LossesIn(seen.Hour), Forecast: cmp.Or(forecasts[name], none), Wrong: seen.Queues[name]})
		}
	}
	l.VHosts = slices.Sorted(maps.Keys(vhosts))
}

// compare is the order that the user chose.
func (l *queuesPage) compare(a, b queueRow) int {
	by, names := orders[l.Sort](a, b), 0
	if by == 0 {
		names = cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.VHost, b.VHost))
	}
	if l.Descending {
		by = -by
		if l.Sort == "name" {
			names = -names
		}
	}
	return cmp.Or(by, names)
}

// sortable are the columns to sort by.
var sortable = []column{
	{Name: "Queue", Key: "name"}, {Name: "Purpose", Key: "purpose"}, {Name: "Ready", Key: "ready", Number: true}, {Name: "Unacked", Key: "unacked", Number: true},
	{Name: "Consumers", Key: "consumers", Number: true}, {Name: "Oldest", Key: "oldest", Number: true}, {Name: "Deadlines", Key: "deadlines", Number: true}, {Name: "At risk", Key: "miss", Number: true},
	{Name: "Lost, last hour", Key: "lost", Number: true}, {Name: "In /s", Key: "in", Number: true}, {Name: "Out /s", Key: "out", Number: true},
}

func (l *queuesPage) form() g.Node {
	sorts := []string{"risk", "what is worst"}
	for _, c := range sortable {
		sorts = append(sorts, c.Key, c.Name)
	}
	return ui.Search("/queues",
		l.Form.Field("Name contains", "q", "", h.Type("search"), h.MaxLength("256")),
		g.If(len(l.VHosts) > 1, l.Form.Choose("Virtual host", "vhost", "", ui.Or("all", l.VHosts)...)),
		l.Form.Choose("Purpose", "purpose", "", ui.Or("all", deadline.Purposes)...),
		l.Form.Choose("Sorted by", "sort", "", sorts...),
		g.If(l.Form.Get("desc") != "", g.Group{ui.Hidden("desc", l.Form.Get("desc")), ui.Hidden("of", l.Sort)}), // the direction is kept, unless another column is chosen
		ui.Button("Filter"))
}

func (l *queuesPage) list() g.Node {
	switch {
	case l.All == 0:
		return ui.Empty(g.Text("There are no queues yet. Connect a client to this broker and declare a queue: it appears here at once. Or run "),
			ui.Code("curfew demo --against"), g.Text(" with this address, which adds examples."))
	case len(l.Rows) == 0:
		return ui.Empty(g.Text("None of "+ui.Plural(l.All, "queue")+" matches. "), ui.Link("/queues", g.Text("Show all")))
	}
	more := []string{"Last hour", "Dead letters to"}
	var names []string
	var headings g.Group
	for _, c := range sortable { // a second click reverses the order; numbers begin with the largest
		sorted, descending := "", c.Number
		if c.Key == l.Sort {
			sorted, descending = map[bool]string{true: "descending", false: "ascending"}[l.Descending], !l.Descending
		}
		to := ui.With("/queues", l.asked, "sort", c.Key, "desc", map[bool]string{true: "1", false: "0"}[descending], "of", "", "page", "")
		names = append(names, c.Name)
		headings = append(headings, h.Th(h.Scope("col"), g.If(c.Number, h.Class("number")), g.If(sorted != "", h.Aria("sort", sorted)), ui.Link(to, g.Text(c.Name))))
	}
	names = append(names, more...)
	return g.Group{
		h.Div(h.Class("scroll"), h.Table(
			h.THead(h.Tr(headings, g.Map(more, ui.Heading))),
			h.TBody(ui.Labelled(names, g.Map(l.Rows, queueRow.draw))))),
		l.Cut.Draw("queue"),
	}
}

func (q queueRow) draw() g.Node {
	wrong := g.Group{}
	if q.Wrong.In != nil {
		wrong = g.Group{g.Text(" "), ui.Link("/incidents#incident-"+q.Wrong.In.ID, ui.Severity(string(q.Wrong.Level)))}
	}
	return h.Tr(
		h.Td(h.Class("name"), ui.QueueLink(ui.QueueURL(q.VHost, q.Name), q.VHost, q.Name), wrong),
		h.Td(h.Span(h.Class("tag"), g.Text(q.Queue.Purpose.String()))),
		ui.Amount(g.Text(ui.Number(q.Ready))), ui.Amount(g.Text(ui.Number(q.Unacked))), h.Td(h.Class("clients"), ui.OrFaint(q.Consumers), topology.Clients(q.Holders)), ui.Amount(ui.Either(q.OldestAge == 0, ui.Faint("–"), g.Text(ui.Span(q.OldestAge)))),
		ui.Amount(ui.Deadlines(q.Forecast)), ui.Amount(ui.AtRisk(q.Forecast)), ui.Amount(ui.Lost(q.Losses)),
		ui.Amount(ui.Rate(q.In)), ui.Amount(ui.Rate(q.Out)),
		h.Td(h.Class("trend"), ui.Sparkline(q.Depths, "depth in the last hour")),
		h.Td(q.deadLetters()))
}

// deadLetters shows where dead letters go, or that they are lost.
func (q queueRow) deadLetters() g.Node {
	switch {
	case q.DeadLetters:
		return deadLettersTo(q.Queue)
	case q.Queue.Purpose == deadline.DeadLetters:
		return ui.Faint("kept here")
	case q.Forecast.AtRisk > 0:
		return ui.Class("warn", g.Text("nowhere: they are lost"))
	}
	return ui.Faint("nowhere: they are lost")
}
