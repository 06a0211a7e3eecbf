package overview

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/changes"
	"curfew/monitor/incident"
)

// page is what the page of incidents shows.
type page struct {
	incident.Overview
	Rules error    // why the file of rules is not in force
	Form  *ui.Form // of a maintenance window, to fill in
	Now   int64
}

// lasts has the durations that the forms offer; "" is for as long as the incident lasts.
var lasts = []string{"15m", "15 minutes", "1h", "1 hour", "4h", "4 hours", "24h", "a day", "168h", "a week"}

// incidents adds the page of incidents and its forms.
func (d *Pages) incidents(group *ui.Group) {
	group.Pages["/incidents"] = ui.Page{Title: "Incidents", Tab: "/incidents", Live: true, Build: func(r *http.Request, _ ui.Visitor) (ui.View, error) {
		p := &page{d.Incidents.Overview(), d.Incidents.FileError(), ui.NewForm(r.URL.Query(), "duration", "1h"), time.Now().UnixMilli()}
		return func(s *ui.Info) ui.Drawing {
			return ui.Drawing{Top: h.H1(g.Text("Incidents")), Live: g.Group{p.mistakes(), p.now(s), p.windows(s), p.receivers(), p.over()}, Bottom: p.windowForm(s)}
		}, nil
	}}
	group.Changes = map[string]ui.Handler{
		"/incidents/ack": d.does(changes.Acknowledge.Op, "acknowledged", "incident", "duration", "comment"), "/incidents/unack": d.does(changes.Unacknowledge.Op, "unacknowledged", "incident"),
		"/maintenance":     d.does(changes.AddWindow.Op, "window_begun", "duration", "condition", "vhost", "queue", "comment"),
		"/maintenance/end": d.does(changes.EndWindow.Op, "window_ended", "id"),
	}
}

// does does an operation with these fields of a form, after which the page says what was done.
func (d *Pages) does(op *operate.Op, said string, fields ...string) ui.Handler {
	return func(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
		values := map[string]any{}
		for _, name := range fields {
			values[name] = r.PostFormValue(op.Field(name).Form)
		}
		request, err := op.Decode(values)
		if err == nil {
			_, _, err = d.Changes.Operations.Do(r.Context(), v.Actor, op, request, nil)
		}
		if err != nil {
			d.Site.Refuse(w, r, err)
			return
		}
		http.Redirect(w, r, ui.At("/incidents", "said", said, "of", r.PostFormValue("id")), http.StatusSeeOther)
	}
}

// mistakes lists the mistakes in the alerts file.
func (p *page) mistakes() g.Node {
	if p.Rules == nil {
		return nil
	}
	lines := strings.Split(p.Rules.Error(), "\n")
	return ui.Card("rules", "The alerts file is not in force", nil,
		h.Ul(g.Map(lines, func(line string) g.Node { return h.Li(ui.Name(line)) })),
		ui.Faint("The file is read again when it changes."))
}

func (p *page) now(s *ui.Info) g.Node {
	if len(p.Incidents) == 0 {
		return ui.Card("now", "Now", nil, ui.Empty(g.Text("No incidents.")))
	}
	said := map[string]bool{}
	return ui.Card("now", "Now: "+string(p.Verdict), nil, g.Map(p.Incidents, func(i incident.Incident) g.Node {
		again := said[i.Do] // an incident above, of the same condition, says what to do
		said[i.Do] = true
		return p.one(s, &i, !again)
	}))
}

// one draws an incident that is not over, with what to do about it if advise is set.
func (p *page) one(s *ui.Info, i *incident.Incident, advise bool) g.Node {
	state := g.Group{g.Text("since " + ui.Clock(i.Since.UnixMilli()) + " UTC, " + ui.Millis(p.Now-i.Since.UnixMilli()))}
	if i.Losing != nil {
		state = append(state, g.Text(" · losing messages since "+ui.Clock(i.Losing.UnixMilli())+" UTC"))
	}
	switch {
	case i.Ack != nil:
		state = append(state, g.Text(" · acknowledged by "), ui.Name(i.Ack.By), g.Text(until(i.Ack.Until)), g.If(i.Ack.Comment != "", ui.Name(": "+i.Ack.Comment)))
	case i.Quiet:
		state = append(state, g.Text(" · in maintenance"))
	}
	return h.Article(h.Class("verdict "+ui.RiskClass(i.Level == incident.Critical)), h.ID("incident-"+i.ID),
		h.H3(ui.Severity(string(i.Level)), g.Text(" "), ui.Name(i.Summary)),
		h.P(h.Class("faint"), state),
		g.If(len(i.Worst) > 1, h.Ul(g.Map(i.Worst, func(q incident.Affected) g.Node {
			return h.Li(ui.QueueLink(ui.QueueURL(q.VHost, q.Queue), q.VHost, q.Queue), g.Text(" "), ui.Name(q.Text))
		}))),
		h.P(g.If(advise, g.Group{ui.Advice(i.Do), g.Text(" ")}), ui.Code(i.Command)),
		h.P(ui.Spaced(
			ui.Follow("related", i.Page, opens(i.Page)),
			g.If(i.Runbook != "", h.A(h.Href(i.Runbook), h.Rel("external noopener"), g.Text("What to do"))),
			ui.Faint(i.Alertname))),
		h.P(g.If(s.User.Admin, p.actions(s, i))),
		h.Details(h.Summary(g.Text("History")), h.Dl(g.Map(i.History, func(e incident.Entry) g.Node { return ui.Fact(ui.Clock(e.At.UnixMilli()), ui.Name(e.Text)) }))))
}

// opens says which page a link opens.
func opens(page string) string {
	path, _, _ := strings.Cut(page, "?")
	return cmp.Or(map[string]string{"/queue": "Open queue", "/dead-letter": "Open dead letters", "/dead-letters": "Open dead letters", "/consumers": "Open consumers", "/connections": "Open connections",
		"/audit": "Open audit", "/queues": "Open queues", "/policies": "Open policies"}[path], "Open page")
}

func until(at *time.Time) string {
	if at == nil {
		return ""
	}
	return " until " + ui.Instant(*at)
}

// actions are the buttons of an incident.
func (p *page) actions(s *ui.Info, i *incident.Incident) g.Node {
	if i.Ack != nil {
		return s.Change("/incidents/unack", "", ui.Hidden("id", i.ID), ui.Button("End acknowledgement"))
	}
	options := g.Group{h.Option(h.Value(""), g.Text("until it is over"))}
	for n := 0; n < len(lasts); n += 2 {
		options = append(options, h.Option(h.Value(lasts[n]), g.Text("for "+lasts[n+1])))
	}
	return s.Change("/incidents/ack", "filter", ui.Hidden("id", i.ID),
		h.Label(g.Text("What is done about it "), h.Input(h.Name("comment"), h.MaxLength("500"), h.Placeholder("optional"))),
		h.Label(g.Text("Tell nobody "), h.Select(h.Name("duration"), options)), ui.Button("Acknowledge"))
}

// over lists the last incidents that are over.
func (p *page) over() g.Node {
	if len(p.Over) == 0 {
		return nil
	}
	return ui.Card("over", "Over", nil, ui.Table([]string{"What", "Began", "Lasted", "#Messages in all"}, g.Map(p.Over, func(i incident.Incident) g.Node {
		return h.Tr(h.ID("incident-"+i.ID), h.Td(ui.Name(i.Summary)), h.Td(ui.Ago(i.Since)), h.Td(g.Text(ui.Span(i.Ended.Sub(i.Since).Truncate(time.Second)))), ui.Amount(g.If(i.Toll > 0, g.Text(ui.Number(i.Toll)))))
	})))
}

func (p *page) windows(s *ui.Info) g.Node {
	if len(p.Windows) == 0 {
		return nil
	}
	return ui.Card("windows", "Maintenance", nil,
		ui.Table([]string{"Condition", "Virtual host", "Queue", "By", "Comment", "Begins", "Ends", ""}, g.Map(p.Windows, func(w incident.Window) g.Node { return windowRow(s, w) })))
}

// windowRow is a row of the maintenance windows.
func windowRow(s *ui.Info, w incident.Window) g.Node {
	condition := cmp.Or(w.Condition, "all")
	if c := incident.ConditionOf(w.Condition); c != nil {
		condition = c.What
	}
	return h.Tr(
		h.Td(ui.Name(condition)), h.Td(ui.Name(cmp.Or(w.VHost, "all"))), h.Td(ui.Name(cmp.Or(w.Queue, "all"))), h.Td(ui.Name(cmp.Or(w.Author, "–"))), h.Td(ui.Name(cmp.Or(w.Comment, "–"))),
		h.Td(h.Time(g.Text(ui.Instant(w.From)))), h.Td(h.Time(g.Text(ui.Instant(w.Until)))),
		h.Td(g.If(s.User.Admin, s.Change("/maintenance/end", "", ui.Hidden("id", w.ID), ui.Button("End")))))
}

func (p *page) receivers() g.Node {
	const title = "Where notifications go"
	if len(p.Sinks) < 2 { // the log is always there
		return ui.Card("sinks", title, nil, ui.Empty(g.Text("Only to the log. Add sinks in "), ui.Code("CURFEW_ALERT_URLS"), g.Text(" or in the file of "), ui.Code("CURFEW_ALERTS"),
			g.Text(", then test them with "), ui.Code("curfew incident test"), g.Text(".")))
	}
	return ui.Card("sinks", title, nil, ui.Facts(g.Map(p.Sinks, receiver)))
}

func receiver(s incident.SinkStatus) g.Node {
	is := g.Group{ui.Class("good", g.Text("works"))}
	if s.Trouble != nil {
		is = g.Group{ui.Class("bad", g.Text("failing")), g.Text(" "),
			h.Time(h.Title("since "+ui.Instant(s.Trouble.Since)), g.Text("for "+ui.Span(time.Since(s.Trouble.Since)))), g.Text(": "), ui.Name(s.Trouble.Error)}
	}
	if s.Queued > 0 {
		is = append(is, g.Text(", "+ui.Number(s.Queued)+" waiting"))
	}
	return ui.Fact(s.Name, is)
}

func (p *page) windowForm(s *ui.Info) g.Node {
	if !s.User.Admin {
		return nil
	}
	f, conditions := p.Form, []string{"", "all"}
	for _, c := range incident.Conditions {
		conditions = append(conditions, c.Name, c.What)
	}
	return ui.Card("maintenance", "Maintenance", nil, h.P(ui.Faint("Nobody is notified for a time of what goes wrong with these queues. It is still shown.")), s.Change("/maintenance", "filter",
		f.Choose("Condition", "condition", "", conditions...),
		f.Field("Virtual host", "vhost", "", h.Placeholder("all")),
		f.Field("Queue", "queue", "", h.Placeholder("all; * and ? are wildcards")),
		f.Choose("For", "duration", "", lasts...),
		f.Field("Comment", "comment", "", h.MaxLength("500")),
		ui.Button("Begin", h.Class("primary"))))
}
