package letters

import (
	"net/http"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// queuesPage is the content of the page of dead letters.
type queuesPage struct {
	Find   string
	Queues []*deadletters.Queue
	Cut    ui.Cut
	All    int // queues
	Total  int // messages
	Runs   int // that go on
}

func (d Pages) queues(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	all, err := operate.ListDeadLetterQueues.Do(r.Context(), d.Operations, v.Actor, operate.VHostFilter{})
	if err != nil {
		return nil, err
	}
	l := &queuesPage{Find: q.Get("q"), All: len(all), Total: deadletters.Kept(all)}
	runs, err := operate.ListRuns.Do(r.Context(), d.Operations, v.Actor, operate.None{})
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		if run.State == deadletters.Running {
			l.Runs++
		}
	}
	find := strings.ToLower(l.Find)
	for _, q := range all {
		if strings.Contains(strings.ToLower(q.Queue), find) {
			l.Queues = append(l.Queues, q)
		}
	}
	l.Queues, l.Cut = ui.CutOf(l.Queues, "/dead-letters", q, "page")
	return l.draw, nil
}

func (l *queuesPage) draw(*ui.Info) ui.Drawing {
	top := g.Group{h.H1(g.Text("Dead letters"))}
	if l.All > ui.PageRows || l.Find != "" {
		top = append(top, ui.Search("/dead-letters", ui.NewForm(nil, "q", l.Find).Field("Queue contains", "q", "", h.Type("search")), ui.Button("Search")))
	}
	top = append(top, ui.Search("/audit", ui.NewForm(nil).Field("Find what became of a message", "message_id", "", h.Type("search"), h.Placeholder("message id"), h.Required(), h.MaxLength("255")), ui.Button("Find")))
	return ui.Drawing{Top: top, Live: g.Group{g.If(l.Runs > 0, h.P(ui.Link(runsPath, g.Text(ui.Plural(l.Runs, "run"))), g.Text(" in progress."))), l.queues()}}
}

func (l *queuesPage) queues() g.Node {
	const title = "Queues with dead letters"
	switch {
	case l.All == 0:
		return ui.Card("holders", title, nil, ui.Empty(
			g.Text("No queue has dead letters, and none sends any. Give a queue a dead-letter exchange (a policy with "), ui.Code("dead-letter-exchange"),
			g.Text(", or "), ui.Code("x-dead-letter-queue"), g.Text("). Messages that expire or are rejected in it can then be viewed, searched and replayed here.")))
	case len(l.Queues) == 0:
		return ui.Card("holders", title, nil, ui.Empty(g.Text("None of them matches. "), ui.Link("/dead-letters", g.Text("Show all")), g.Text(".")))
	}
	return ui.Card("holders", title, g.If(l.Total > 0, ui.Faint(ui.Plural(l.Total, "dead letter")+" in all")),
		ui.Table([]string{"Queue", "#Messages", "#Size", "From"}, g.Map(l.Queues, letterQueue)), l.Cut.DrawIfCut("queue"))
}

func letterQueue(q *deadletters.Queue) g.Node {
	const most = 8
	from, none := q.From, "no dead-letter exchange leads here now"
	if q.Parked {
		none = "queues whose dead letters have nowhere to go"
	}
	if len(from) > most {
		from = append(from[:most:most], "…")
	}
	return h.Tr(
		h.Td(ui.QueueLink(URL(q.VHost, q.Queue, ""), q.VHost, q.Queue), g.If(q.Parked, g.Group{g.Text(" "), ui.Class("tag warn", g.Text("parked: no route"))}),
			g.If(q.Kept() < q.Ready+q.Unacked, g.Group{g.Text(" "), ui.Class("tag", g.Text("not counted: for "+q.Purpose))})),
		ui.Amount(g.Text(ui.Number(q.Ready)), g.If(q.Unacked > 0, g.Group{g.Text(" "), ui.Faint("+ " + ui.Number(q.Unacked) + " unacked")})),
		ui.Amount(g.Text(ui.Bytes(q.Bytes))),
		h.Td(ui.Names(from, ui.Faint(none))))
}
