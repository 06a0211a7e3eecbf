package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor"
	"curfew/monitor/alert"
)

func (o *overview) draw(*shown) drawing {
	columns := g.Group{o.alerts(), o.parts()}
	if o.Watched {
		columns = g.Group{o.forecasts(), o.lateness(), o.missed(), o.alerts(), o.parts()}
	}
	return drawing{live: g.Group{o.Verdict.draw(), o.figures(), o.Timeline.draw(), h.Div(h.Class("columns"), columns)}}
}

func (v *verdict) draw() g.Node {
	return h.Section(h.Class("verdict "+v.Level), h.Role("status"), h.Aria("label", "State"),
		h.H1(name(v.Text)),
		g.Map(v.More, func(text string) g.Node { return h.P(name(text)) }))
}

func (o *overview) figures() g.Node {
	perSecond := func(rate float64) g.Node {
		if !o.Rates.Known {
			return g.Text("–")
		}
		return g.Text(rateText(rate))
	}
	late := "–"
	if o.Late != "" {
		late = o.Late
	}
	return figures(
		figure("Deadlines ahead", g.Text(number(o.Health.Pending))),
		figure("Will miss", g.If(o.WillMiss > 0, h.Class("warn")), g.Text(number(o.WillMiss))),
		figure("Lateness, p99", g.Text(late)),
		figure("Ready", g.Text(number(o.Ready))),
		figure("Unacked", g.Text(number(o.Unacked))),
		figure("Published /s", perSecond(o.Rates.Published)),
		figure("Delivered /s", perSecond(o.Rates.Delivered)),
		figure("Expired /s", perSecond(o.Rates.Expired)))
}

func (o *overview) forecasts() g.Node {
	var more g.Node
	if o.MoreForecasts > 0 {
		more = link("/queues?sort=miss&desc=1", g.Text(number(o.MoreForecasts)+" more"))
	}
	if len(o.Forecasts) == 0 {
		return card("forecast", "Forecast", more, empty(g.Text("No messages with deadlines wait in any queue.")))
	}
	return card("forecast", "Forecast", more, table([]string{"Queue", "#Deadlines", "#Drain /s", "#Will miss", "#First miss"},
		g.Map(o.Forecasts, func(f monitor.Forecast) g.Node { return o.forecast(&f) })))
}

func (o *overview) forecast(f *monitor.Forecast) g.Node {
	first := faint("none")
	if f.FirstMiss != 0 {
		first = g.Text(until(f.FirstMiss, o.Now))
	}
	return h.Tr(
		h.Td(queueLink(queueURL(f.VHost, f.Queue), f.VHost, f.Queue)),
		amount(deadlines(f)), amount(g.Text(rateText(f.Rate))), amount(willMiss(f)), amount(first))
}

func (o *overview) lateness() g.Node {
	l := o.Histogram
	views, over := choices("Span", l.Choices), "in "+since(o.Started)
	if l.Span > 0 {
		over = "in the last " + span(l.Span)
	}
	switch {
	case l.Total > 0:
		return card("lateness", "Lateness", views, l.draw(over))
	case l.Span > 0:
		return card("lateness", "Lateness", views, empty(g.Text("Nothing expired "+over+".")))
	}
	return card("lateness", "Lateness", nil, empty(g.Text("Nothing expired since Curfew started "+since(o.Started)+" ago.")))
}

func (o *overview) missed() g.Node {
	var all g.Node
	if o.Audited {
		all = link("/audit", g.Text("Search all"))
	}
	list := empty(g.Text("No message expired since Curfew started. When one does, it is listed here with how late it left."))
	if len(o.Missed) > 0 {
		list = table([]string{"When (UTC)", "Queue", "#Messages", "Became", "Noticed", "#Late by"}, g.Map(o.Missed, missedRow))
	}
	return h.Div(h.Class("wide"), card("missed", "Missed deadlines", all, list))
}

func missedRow(m monitor.Miss) g.Node {
	return h.Tr(
		h.Td(h.Time(h.Title(utc(m.At)), g.Text(clock(m.At)))),
		h.Td(queueLink(queueURL(m.VHost, m.Queue), m.VHost, m.Queue)),
		amount(g.Text(number(m.Count))), h.Td(outcome(m.Action)), h.Td(h.Class("faint"), name(m.Path)),
		amount(either(m.Late, class("bad", g.Text(millis(m.WorstMillis))), g.Text(millis(m.WorstMillis)))))
}

func (o *overview) alerts() g.Node {
	all := link("/alerts", g.Text("All alerts and silences"))
	if len(o.Alerts) == 0 {
		return card("alerts", "Alerts", all, empty(g.Text("Nothing fires.")))
	}
	return card("alerts", "Alerts", all, h.Ul(h.Class("alerts"), g.Map(o.Alerts, func(a alert.Status) g.Node {
		return h.Li(severity(a.Severity), g.Text(" "), h.Span(name(a.Summary)), g.Text(" "), faint(a.State))
	})))
}

func (o *overview) parts() g.Node {
	publishers := class("good", g.Text("free to publish"))
	switch {
	case o.Blocked != "":
		publishers = class("bad", g.Text("blocked, "), name(o.Blocked))
	case o.InFlow > 0:
		publishers = g.Text(plural(o.InFlow, "connection") + " waiting for consumers (flow)")
	}
	memory := byteCount(o.Memory)
	if o.MemoryMax > 0 {
		memory += " of " + byteCount(o.MemoryMax)
	}
	return card("parts", "Parts", nil, facts(
		g.If(o.Watched, o.schedule()),
		fact("Store", o.store()),
		fact("Publishers", publishers),
		fact("Memory", g.Text(memory)),
		fact("Clients", g.Text(plural(o.Connections, "connection")+", "+plural(o.Channels, "channel")+", "+plural(o.Consumers, "consumer"))),
		fact("Queues", link("/queues", g.Text(plural(o.Queues, "queue")))),
		fact("Up", g.Text(since(o.Started)))))
}

func (o *overview) schedule() g.Node {
	is := g.Group{class("bad", g.Text("Redis is away")), g.Text("; this process fires")}
	switch o.Health.Schedule {
	case monitor.ScheduleUp:
		is = g.Group{class("good", g.Text("Redis")), g.Text(", fires on time")}
	case monitor.ScheduleEmbedded:
		is = g.Group{class("good", g.Text("in this process"))}
	case monitor.ScheduleRebuilding:
		is = g.Group{class("warn", g.Text("rebuilding Redis")), g.Text("; this process fires")}
	}
	return fact("Schedule", is, faint(" since "+instant(o.Health.Since)))
}

func (o *overview) store() g.Node {
	if o.DataDir == "" {
		return g.Group{class("warn", g.Text("memory only")), g.Text(": a restart loses every message; set CURFEW_DATA_DIR")}
	}
	return g.Group{class("good", g.Text("on disk")), g.Text(" "), class("faint", name(o.DataDir))}
}
