package dashboard

import (
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/rabbitmq"
)

func (p *rabbitmqPage) draw(s *pageInfo) drawing {
	return drawing{
		top:  h.H1(g.Text("RabbitMQ")),
		live: g.Group{p.numbers(), p.cluster(), p.kept(s), p.observed(), p.others()},
	}
}

func (p *rabbitmqPage) numbers() g.Node {
	next := "none"
	if p.Next != 0 {
		next = format.Until(p.Next, p.Now)
	}
	return figures(
		figure("Queues kept here", g.Text(format.Number(p.Here)), faint(" of "+format.Number(len(p.Kept)))),
		figure("Messages held", g.Text(format.Number(p.Held))),
		figure("Next due", g.Text(next)),
		figure("Observed", g.Text(format.Number(len(p.Observed)))))
}

// explanation is a reason and what to do about it, if there are any.
func explanation(q *rabbitmq.Queue) g.Node {
	text := strings.TrimSpace(q.Reason + " " + q.Instead)
	if text == "" {
		return nil
	}
	return faint(format.Visible(text))
}

// nameOr is a name, or nothing if there is none.
func nameOr(text string) g.Node {
	if text == "" {
		return nil
	}
	return name(text)
}

// bound is an upper bound in ms; nil: there is none.
func bound(millis *float64) string {
	if millis == nil {
		return "> 60000"
	}
	return "≤ " + strconv.FormatFloat(*millis, 'f', -1, 64)
}

func (p *rabbitmqPage) cluster() g.Node {
	redis := g.Group{class("warn", g.Text("none")), g.Text(": only this Curfew may keep these queues")}
	switch p.Redis {
	case "up":
		redis = g.Group{class("good", g.Text("up"))}
	case "down":
		redis = g.Group{class("bad", g.Text("down")), g.Text(": what is kept is kept on, nothing is taken over")}
	}
	observer := g.Text("nobody")
	if p.Observer != "" {
		observer = name(p.Observer)
	}
	return card("cluster", "Cluster", nil,
		g.If(len(p.Reasons) > 0, h.Ul(g.Map(p.Reasons, func(reason string) g.Node { return h.Li(class("bad", name(reason))) }))),
		facts(
			fact("RabbitMQ", nameOr(p.Broker), faint(" "+format.Visible(p.Address))),
			fact("Curfews", name(strings.Join(p.Members, ", "))),
			fact("Observes", observer),
			fact("Redis", redis),
			fact("Looked at", g.Text(format.Instant(time.UnixMilli(p.LookedAt))))),
		g.If(len(p.Notes) > 0, h.Ul(g.Map(p.Notes, func(note string) g.Node { return h.Li(faint(format.Visible(note))) }))))
}

func (p *rabbitmqPage) kept(s *pageInfo) g.Node {
	const title = "Kept"
	if len(p.Kept) == 0 {
		return card("kept", title, nil, empty(g.Text("No queue is to be kept. Name them in "), code("CURFEW_WATCH"), g.Text(", such as "), code("keep:retry-*"), g.Text(".")))
	}
	return card("kept", title, nil,
		table([]string{"Queue", "State", "Kept by", "#Held", "#Due next", "#Late p50 / p99, ms", "#Expired", ""}, g.Map(p.Kept, func(q rabbitmq.Queue) g.Node { return p.keptRow(s, q) })))
}

func (p *rabbitmqPage) keptRow(s *pageInfo, q rabbitmq.Queue) g.Node {
	due := "-"
	if q.NextDue != 0 {
		due = format.Until(q.NextDue, p.Now)
	}
	held, late, expired := format.Number(q.Held), "-", format.Number(int(q.Expired))
	if q.P50 != nil {
		late = bound(q.P50) + " / " + bound(q.P99)
	}
	if !q.Here {
		held, due, late, expired = "", "", "", ""
	}
	var allow g.Node
	if q.NeedsOperator && s.User.Admin {
		allow = s.change("/rabbitmq/allow", hidden("queue", q.Queue), button("Keep again"))
	}
	return h.Tr(
		h.Td(name(q.Queue), h.Br(), faint(q.Type)),
		h.Td(stateTag(&q), h.Br(), explanation(&q)),
		h.Td(nameOr(q.Keeper)),
		amount(g.Text(held)), amount(g.Text(due)), amount(g.Text(late)), amount(g.Text(expired)),
		h.Td(h.Class("tight"), allow))
}

// stateTag is the state in words, and how good that is.
func stateTag(q *rabbitmq.Queue) g.Node {
	level := "tag warn"
	switch q.State {
	case "keeping":
		level = "tag good"
	case "observing":
		if !q.Here && q.Keeper != "" {
			return class("tag good", g.Text("kept elsewhere"))
		}
	case "let_go", "refused":
		level = "tag bad"
	}
	return class(level, g.Text(strings.ReplaceAll(q.State, "_", " ")))
}

func (p *rabbitmqPage) observed() g.Node {
	const title = "Observed"
	if len(p.Observed) == 0 {
		return nil
	}
	return card("observed", title, nil,
		table([]string{"Queue", "#Ready", "#Consumers", "#Missed", "#Overdue", "#Will miss", "How"}, g.Map(p.Observed, observedRow)))
}

func observedRow(q rabbitmq.Queue) g.Node {
	o := q.Observed
	if o == nil {
		return h.Tr(h.Td(name(q.Queue), h.Br(), faint(q.Type)), amount(), amount(), amount(), amount(), amount(), h.Td(faint("another Curfew observes")))
	}
	if !o.Tapped {
		return h.Tr(h.Td(name(q.Queue), h.Br(), faint(q.Type)), amount(g.Text(format.Number(o.Ready))), amount(g.Text(format.Number(o.Consumers))), amount(), amount(), amount(),
			h.Td(g.Text("by its totals"), h.Br(), explanation(&q)))
	}
	return h.Tr(h.Td(name(q.Queue), h.Br(), faint(q.Type)), amount(g.Text(format.Number(o.Ready))), amount(g.Text(format.Number(o.Consumers))),
		amount(g.Text(format.Number(int(o.Missed)))), amount(g.Text(format.Number(o.Overdue))), amount(g.Text(format.Number(o.WillMiss))), h.Td(g.Text("each message")))
}

func (p *rabbitmqPage) others() g.Node {
	if len(p.Others) == 0 {
		return nil
	}
	return card("others", "Not kept, and not worse for it", nil,
		table([]string{"Queue", "State", "Why"}, g.Map(p.Others, func(q rabbitmq.Queue) g.Node {
			return h.Tr(h.Td(name(q.Queue), h.Br(), faint(q.Type)), h.Td(stateTag(&q)), h.Td(explanation(&q)))
		})))
}
