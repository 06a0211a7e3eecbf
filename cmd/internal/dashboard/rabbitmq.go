package dashboard

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/incident"
	"curfew/monitor/rabbitmq"
)

// RabbitMQ is what the dashboard shows of the RabbitMQ whose deadlines are kept. *rabbitmq.Primary is one.
type RabbitMQ interface {
	Status() rabbitmq.Status
}

// rabbitmqPage is what the page of RabbitMQ shows.
type rabbitmqPage struct {
	rabbitmq.Status
	Kept, Observed, Others []rabbitmq.Queue // kept, or to be kept; observed; neither
	Here, Held             int              // queues kept here, messages held for them
	Next                   int64            // Unix ms; 0: none
	Now                    int64
	forecasts              map[incident.QueueName]*deadline.Forecast
}

func (d *Dashboard) rabbitmq(*http.Request, ui.Visitor) (ui.View, error) {
	p := &rabbitmqPage{Status: d.RabbitMQ.Status(), forecasts: incident.ByQueue(d.Incidents.View().Forecasts), Now: time.Now().UnixMilli()}
	for _, q := range p.Queues {
		switch {
		case q.Mode == "keep" && (q.State == "exact" || q.State == "not_worth"):
			p.Others = append(p.Others, q)
		case q.Mode == "keep", q.Mode == "delay", q.Mode == "retry":
			p.Kept = append(p.Kept, q)
			p.Held += q.Held
			if q.Here {
				p.Here++
			}
			if q.NextDue != 0 && (p.Next == 0 || q.NextDue < p.Next) {
				p.Next = q.NextDue
			}
		default:
			p.Observed = append(p.Observed, q)
		}
	}
	return func(*ui.Info) ui.Drawing {
		return ui.Drawing{Top: h.H1(g.Text("RabbitMQ")), Live: g.Group{p.numbers(), p.cluster(), p.kept(), p.observed(), p.others()}}
	}, nil
}

func (p *rabbitmqPage) numbers() g.Node {
	next := "none"
	if p.Next != 0 {
		next = ui.Until(p.Next, p.Now)
	}
	return ui.Figures(
		ui.Figure("Queues kept here", g.Text(ui.Number(p.Here)), ui.Faint(" of "+ui.Number(len(p.Kept)))),
		ui.Figure("Messages held", g.Text(ui.Number(p.Held))),
		ui.Figure("Next due", g.Text(next)),
		ui.Figure("Observed", g.Text(ui.Number(len(p.Observed)))))
}

// explanation is a reason and what to do about it, if there are any.
func explanation(q *rabbitmq.Queue) g.Node {
	text := strings.TrimSpace(q.Reason + " " + q.Instead)
	if text == "" {
		return nil
	}
	return ui.Faint(ui.Visible(text))
}

// bound is an upper bound in ms; nil: there is none.
func bound(millis *float64) string {
	if millis == nil {
		return "> 60000"
	}
	return "≤ " + strconv.FormatFloat(*millis, 'f', -1, 64)
}

func (p *rabbitmqPage) cluster() g.Node {
	redis := g.Group{ui.Class("warn", g.Text("none")), g.Text(": only this Curfew may keep these queues")}
	switch p.Redis {
	case "up":
		redis = g.Group{ui.Class("good", g.Text("up"))}
	case "down":
		redis = g.Group{ui.Class("bad", g.Text("down")), g.Text(": queues already kept stay kept; no new ones are taken over")}
	}
	observer := g.Text("nobody")
	if p.Observer != "" {
		observer = ui.Name(p.Observer)
	}
	return ui.Card("cluster", "Cluster", nil,
		g.If(len(p.Reasons) > 0, h.Ul(g.Map(p.Reasons, func(reason string) g.Node { return h.Li(ui.Class("bad", ui.Name(reason))) }))),
		ui.Facts(
			ui.Fact("RabbitMQ", ui.NameOr(p.Broker, nil), ui.Faint(" "+ui.Visible(p.Address))),
			ui.Fact("Curfews", ui.Name(strings.Join(p.Members, ", "))),
			ui.Fact("Observes", observer),
			ui.Fact("Redis", redis),
			ui.Fact("Looked at", ui.Ago(time.UnixMilli(p.LookedAt)))),
		g.If(len(p.Notes) > 0, h.Ul(g.Map(p.Notes, func(note string) g.Node { return h.Li(ui.Faint(ui.Visible(note))) }))))
}

func (p *rabbitmqPage) kept() g.Node {
	const title = "Kept"
	if len(p.Kept) == 0 {
		return ui.Card("kept", title, nil, ui.Empty(g.Text("No queue is to be kept. Name queues in "), ui.Code("CURFEW_WATCH"), g.Text(", such as "), ui.Code("keep:retry-*"), g.Text(".")))
	}
	return ui.Card("kept", title, nil,
		ui.Table([]string{"Queue", "State", "Kept by", "#Held", "#Due next", "#Late p50 / p99, ms", "#Expired"}, g.Map(p.Kept, p.keptRow)))
}

func (p *rabbitmqPage) keptRow(q rabbitmq.Queue) g.Node {
	due := "-"
	if q.NextDue != 0 {
		due = ui.Until(q.NextDue, p.Now)
	}
	held, late, expired := ui.Number(q.Held), "-", ui.Number(int(q.Expired))
	if q.P50 != nil {
		late = bound(q.P50) + " / " + bound(q.P99)
	}
	if !q.Here && !q.Reported {
		held, due, late, expired = "", "", "", ""
	}
	return h.Tr(
		nameCell(&q),
		h.Td(stateTag(&q), h.Br(), explanation(&q)),
		h.Td(ui.NameOr(q.Keeper, nil)),
		ui.Amount(g.Text(held)), ui.Amount(g.Text(due)), ui.Amount(g.Text(late)), ui.Amount(g.Text(expired)))
}

// stateTag is the state in words, in a color for how good it is.
func stateTag(q *rabbitmq.Queue) g.Node {
	level := "tag warn"
	switch q.State {
	case "keeping":
		level = "tag good"
	case "observing":
		if !q.Here && q.Keeper != "" {
			return ui.Class("tag good", g.Text("kept elsewhere"))
		}
	case "refused":
		level = "tag bad"
	}
	return ui.Class(level, g.Text(strings.ReplaceAll(q.State, "_", " ")))
}

func (p *rabbitmqPage) observed() g.Node {
	const title = "Observed"
	if len(p.Observed) == 0 {
		return nil
	}
	return ui.Card("observed", title, nil,
		ui.Table([]string{"Queue", "#Ready", "#Consumers", "#Missed", "#Overdue", "#At risk", "How"}, g.Map(p.Observed, p.observedRow)))
}

func (p *rabbitmqPage) observedRow(q rabbitmq.Queue) g.Node {
	o := q.Observed
	if o == nil {
		return h.Tr(nameCell(&q), ui.Amount(), ui.Amount(), ui.Amount(), ui.Amount(), ui.Amount(), h.Td(ui.Faint("another Curfew observes")))
	}
	missed, overdue, risk, how := ui.Amount(), ui.Amount(), ui.Amount(), h.Td(g.Text("by its totals"), h.Br(), explanation(&q))
	if o.Tapped {
		missed, overdue, how = ui.Amount(g.Text(ui.Number(int(o.Missed)))), ui.Amount(g.Text(ui.Number(o.Overdue))), h.Td(g.Text("each message"))
		if p.Observer == p.Instance { // the one that observes has the forecasts
			risk = ui.Amount(ui.AtRisk(p.forecasts[incident.QueueName{VHost: p.VHost, Name: q.Queue}]))
		}
	}
	return h.Tr(nameCell(&q), ui.Amount(g.Text(ui.Number(o.Ready))), ui.Amount(g.Text(ui.Number(o.Consumers))), missed, overdue, risk, how)
}

// nameCell is the name of a queue with its type.
func nameCell(q *rabbitmq.Queue) g.Node { return h.Td(ui.Name(q.Queue), h.Br(), ui.Faint(q.Type)) }

func (p *rabbitmqPage) others() g.Node {
	if len(p.Others) == 0 {
		return nil
	}
	return ui.Card("others", "Need not be kept", nil,
		ui.Table([]string{"Queue", "State", "Why"}, g.Map(p.Others, func(q rabbitmq.Queue) g.Node {
			return h.Tr(nameCell(&q), h.Td(stateTag(&q)), h.Td(explanation(&q)))
		})))
}
