package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor"
	"curfew/monitor/alert"
	"curfew/monitor/dashboard/internal/format"
)

func (o *overview) draw(*pageInfo) drawing {
	columns := g.Group{o.alerts(), o.components()}
	if o.Watched {
		columns = g.Group{o.forecasts(), o.lateness(), o.expired(), o.alerts(), o.components()}
	}
	return drawing{live: g.Group{o.verdicts(), o.figures(), o.Timeline.draw(), h.Div(h.Class("columns"), columns)}}
}

// verdicts is the banner.
func (o *overview) verdicts() g.Node {
	return h.Section(h.Role("status"), h.Aria("label", "State"), g.Map(o.Verdicts, verdict.draw))
}

func (v verdict) draw() g.Node {
	return h.Div(h.Class("verdict "+v.Level),
		h.H1(name(v.Text)),
		g.Map(v.More, func(text string) g.Node { return h.P(name(text)) }))
}

func (o *overview) figures() g.Node {
	perSecond := func(rate float64) g.Node {
		if !o.Rates.Known {
			return g.Text("–")
		}
		return g.Text(format.Rate(rate))
	}
	late := "–"
	if o.Late != "" {
		late = o.Late
	}
	return figures(
		figure("Deadlines ahead", g.Text(format.Number(o.Health.Pending))),
		figure("At risk", g.If(o.WillMiss > 0, h.Class("warn")), g.Text(format.Number(o.WillMiss))),
		figure("Lateness, p99", g.Text(late)),
		g.If(!o.Remote, o.traffic(perSecond)))
}

// traffic is what a broker of this process counts.
func (o *overview) traffic(perSecond func(rate float64) g.Node) g.Node {
	return g.Group{
		figure("Ready", g.Text(format.Number(o.Ready))),
		figure("Unacked", g.Text(format.Number(o.Unacked))),
		figure("Published /s", perSecond(o.Rates.Published)),
		figure("Delivered /s", perSecond(o.Rates.Delivered)),
		figure("Expired /s", perSecond(o.Rates.Expired)),
	}
}

func (o *overview) forecasts() g.Node {
	var more g.Node
	if o.MoreForecasts > 0 {
		more = link("/queues?sort=miss&desc=1", g.Text(format.Number(o.MoreForecasts)+" more"))
	}
	if len(o.Forecasts) == 0 {
		return card("forecast", "Forecast", more, empty(g.Text("No messages with deadlines wait in any queue.")))
	}
	return card("forecast", "Forecast", more, table([]string{"Queue", "#Deadlines", "#Drain /s", "#At risk", "#First expires"},
		g.Map(o.Forecasts, func(f monitor.Forecast) g.Node { return o.forecast(&f) })))
}

func (o *overview) forecast(f *monitor.Forecast) g.Node {
	first := faint("none")
	if f.FirstMiss != 0 {
		first = g.Text(format.Until(f.FirstMiss, o.NowMillis))
	}
	return h.Tr(
		h.Td(queueLink(queueURL(f.VHost, f.Queue), f.VHost, f.Queue)),
		amount(deadlines(f)), amount(g.Text(format.Rate(f.Rate))), amount(willMiss(f)), amount(first))
}

func (o *overview) lateness() g.Node {
	l := o.Histogram
	views, over := choices("Span", l.Choices), "in "+format.Since(o.Started)
	if l.Span > 0 {
		over = "in the last " + format.Span(l.Span)
	}
	switch {
	case l.Total > 0:
		return card("lateness", "Lateness", views, l.Draw(over))
	case l.Span > 0:
		return card("lateness", "Lateness", views, empty(g.Text("Nothing expired "+over+".")))
	}
	return card("lateness", "Lateness", nil, empty(g.Text("Nothing expired since Curfew started "+format.Since(o.Started)+" ago.")))
}

func (o *overview) expired() g.Node {
	var all g.Node
	if o.Audited {
		all = link("/audit", g.Text("Search all"))
	}
	list := empty(g.Text("No message expired since Curfew started. When one does, it is listed here with its lateness."))
	if len(o.RecentExpiries) > 0 {
		list = table([]string{"When (UTC)", "Queue", "#Messages", "Outcome", "Path", "#Lateness"}, g.Map(o.RecentExpiries, expiredRow))
	}
	return h.Div(h.Class("wide"), card("expired", "Expired messages", all, list))
}

func expiredRow(m monitor.RecentExpiry) g.Node {
	return h.Tr(
		h.Td(h.Time(h.Title(format.UTC(m.At)), g.Text(format.Clock(m.At)))),
		h.Td(queueLink(queueURL(m.VHost, m.Queue), m.VHost, m.Queue)),
		amount(g.Text(format.Number(m.Count))), h.Td(outcome(m.Action)), h.Td(h.Class("faint"), name(m.Path)),
		amount(either(m.Late, class("bad", g.Text(format.Millis(m.WorstMillis))), g.Text(format.Millis(m.WorstMillis)))))
}

func (o *overview) alerts() g.Node {
	all := link("/alerts", g.Text("All alerts and silences"))
	if len(o.Alerts) == 0 {
		return card("alerts", "Alerts", all, empty(g.Text("No alerts.")))
	}
	return card("alerts", "Alerts", all, h.Ul(h.Class("alerts"), g.Map(o.Alerts, func(a alert.Status) g.Node {
		return h.Li(severity(a.Severity), g.Text(" "), h.Span(name(a.Summary)), g.Text(" "), faint(a.State))
	})))
}

func (o *overview) components() g.Node {
	if o.Remote {
		return card("parts", "Components", nil, facts(o.schedule(), fact("RabbitMQ", link("/rabbitmq", g.Text("its queues"))), fact("Up", g.Text(format.Since(o.Started)))))
	}
	publishers := class("good", g.Text("free to publish"))
	switch {
	case o.Blocked != "":
		publishers = class("bad", g.Text("blocked, "), name(o.Blocked))
	case o.InFlow > 0:
		publishers = g.Text(format.Plural(o.InFlow, "connection") + " waiting for consumers (flow)")
	}
	memory := format.Bytes(o.Memory)
	if o.MemoryMax > 0 {
		memory += " of " + format.Bytes(o.MemoryMax)
	}
	return card("parts", "Components", nil, facts(
		g.If(o.Watched, o.schedule()),
		fact("Store", o.store()),
		fact("Publishers", publishers),
		fact("Memory", g.Text(memory)),
		fact("Clients", g.Text(format.Plural(o.Connections, "connection")+", "+format.Plural(o.Channels, "channel")+", "+format.Plural(o.Consumers, "consumer"))),
		fact("Queues", link("/queues", g.Text(format.Plural(o.Queues, "queue")))),
		fact("Up", g.Text(format.Since(o.Started)))))
}

func (o *overview) schedule() g.Node {
	is := g.Group{class("bad", g.Text("Redis is away")), g.Text("; this process fires")}
	switch o.Health.Schedule {
	case monitor.ScheduleUp:
		is = g.Group{class("good", g.Text("Redis")), g.Text(", fires on time")}
	case monitor.ScheduleOfPrimary:
		is = g.Group{class("good", g.Text("in the keepers of the queues"))}
	case monitor.ScheduleEmbedded:
		is = g.Group{class("good", g.Text("in this process"))}
	case monitor.ScheduleRebuilding:
		is = g.Group{class("warn", g.Text("rebuilding Redis")), g.Text("; this process fires")}
	}
	return fact("Schedule", is, faint(" since "+format.Instant(o.Health.Since)))
}

func (o *overview) store() g.Node {
	if o.DataDir == "" {
		return g.Group{class("warn", g.Text("memory only")), g.Text(": a restart loses every message; set CURFEW_DATA_DIR")}
	}
	return g.Group{class("good", g.Text("on disk")), g.Text(" "), class("faint", name(o.DataDir))}
}
