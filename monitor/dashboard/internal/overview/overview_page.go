package overview

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/monitor"
	"curfew/monitor/alert"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func (o *overview) Draw(*ui.Info) ui.Drawing {
	columns := func(parts ...g.Node) g.Node { return h.Div(append([]g.Node{h.Class("columns")}, parts...)...) }
	live := g.Group{o.verdicts(), o.figures(), o.start(), o.Timeline.draw()}
	if o.Watched {
		live = append(live, columns(o.forecasts(), o.components()), o.History.Draw(), columns(o.lateness(), o.alerts(), o.expired()))
	} else {
		live = append(live, o.History.Draw(), columns(o.alerts(), o.components()))
	}
	return ui.Drawing{Charts: o.History != nil, Live: live}
}

// start shows what to do with an empty Curfew.
func (o *overview) start() g.Node {
	if o.Broker == "" || o.Queues > 0 {
		return nil
	}
	const demo = "demo-command"
	return ui.Card("start", "Start here", nil, ui.Facts(
		ui.Fact("Clients connect to", ui.Code(o.Broker)),
		ui.Fact("Or fill it with examples", h.Span(h.Class("bodytools"), h.Data("keep", demo),
			h.Code(h.ID(demo), g.Text("curfew demo --against "+o.Site)), g.Text(" "),
			h.Button(h.Type("button"), h.Class("quiet"), h.Data("copy", demo), g.Attr("hidden"), g.Text("Copy"))))))
}

// verdicts is the banner.
func (o *overview) verdicts() g.Node {
	return h.Section(h.Role("status"), h.Aria("label", "State"), g.Map(o.Verdicts, verdict.draw))
}

func (v verdict) draw() g.Node {
	return h.Div(h.Class("verdict "+v.Level),
		h.H1(ui.Name(v.Text)),
		g.Map(v.More, line.draw))
}

func (l line) draw() g.Node {
	switch {
	case l.Name != "":
		return h.P(h.B(ui.QueueLink(ui.QueueURL(l.VHost, l.Name), l.VHost, l.Name)), g.Text(" "), ui.Name(l.Text))
	case l.Faint:
		return h.P(h.Class("faint"), ui.Name(l.Text))
	}
	return h.P(ui.Name(l.Text))
}

func (o *overview) figures() g.Node {
	late := "–"
	if o.Late != "" {
		late = o.Late
	}
	today := "–"
	if o.ExpiredToday >= 0 {
		today = format.Number(o.ExpiredToday)
	}
	return ui.Figures(
		ui.Figure("Deadlines ahead", g.Text(format.Number(o.Health.Pending))),
		ui.Figure("At risk", g.If(o.WillMiss > 0, h.Class(ui.RiskClass(o.AtRisk > 0))), g.Text(format.Number(o.WillMiss))),
		ui.Figure("Lateness, p99", g.Text(late)),
		ui.Figure("Expired, 24 h", g.If(o.ExpiredToday > 0, h.Class("warn")), h.Title("messages of all queues, in the last 24 hours"), g.Text(today)),
		g.If(!o.Remote, o.traffic()))
}

// traffic is the rates of the broker in this process.
func (o *overview) traffic() g.Node {
	return g.Group{
		ui.Figure("Ready", g.Text(format.Number(o.Ready))),
		ui.Figure("Unacked", g.Text(format.Number(o.Unacked))),
		ui.Figure("Published /s", ui.Rate(o.Published)),
		ui.Figure("Delivered /s", ui.Rate(o.Delivered)),
	}
}

func (o *overview) forecasts() g.Node {
	var more g.Node
	if o.MoreForecasts > 0 {
		more = ui.Link("/queues?sort=miss&desc=1", g.Text(format.Number(o.MoreForecasts)+" more"))
	}
	if len(o.Forecasts) == 0 {
		return ui.Card("forecast", "Forecast by queue", more, ui.Empty(g.Text("No messages with deadlines wait in any queue.")))
	}
	return ui.Card("forecast", "Forecast by queue", more, ui.Table([]string{"Queue", "#Deadlines", "#Drain /s", "#At risk", "#First expires"},
		g.Map(o.Forecasts, func(f monitor.Forecast) g.Node { return o.forecast(&f) })),
		g.If(o.AtRisk > 0, h.P(h.Class("note"), ui.Class("bad", g.Text("Red")), g.Text(": nearly due. Half the lifetime of the first message to expire has passed."))))
}

func (o *overview) forecast(f *monitor.Forecast) g.Node {
	first := ui.Faint("none")
	if f.FirstMiss != 0 {
		first = g.Text(format.Until(f.FirstMiss, o.NowMillis))
	}
	return h.Tr(
		h.Td(ui.QueueLink(ui.QueueURL(f.VHost, f.Queue), f.VHost, f.Queue)),
		ui.Amount(ui.Deadlines(f)), ui.Amount(g.Text(format.Rate(f.Rate))), ui.Amount(ui.WillMiss(f)), ui.Amount(first))
}

func (o *overview) lateness() g.Node {
	l := o.Histogram
	views, over := ui.Choices("Span of the lateness", l.Choices), "in "+format.Since(o.Started)
	if l.Span > 0 {
		over = "in the last " + format.Span(l.Span)
	}
	switch {
	case l.Total > 0:
		return ui.Card("lateness", "Lateness", views, l.Draw(over))
	case l.Span > 0:
		return ui.Card("lateness", "Lateness", views, ui.Empty(g.Text("Nothing expired "+over+".")))
	}
	return ui.Card("lateness", "Lateness", nil, ui.Empty(g.Text("Nothing expired since Curfew started "+format.Since(o.Started)+" ago.")))
}

func (o *overview) expired() g.Node {
	var all g.Node
	if o.Audited {
		all = ui.Link("/audit", g.Text("Search all"))
	}
	list := ui.Empty(g.Text("No message expired since Curfew started. Messages that expire are listed here with their lateness."))
	if len(o.RecentExpiries) > 0 {
		list = ui.Table([]string{"When (UTC)", "Queue", "#Messages", "Outcome", "Path", "#Lateness"}, g.Map(o.RecentExpiries, expiredRow))
	}
	return h.Div(h.Class("wide"), ui.Card("expired", "Expired messages", all, list))
}

func expiredRow(m monitor.RecentExpiry) g.Node {
	return h.Tr(
		h.Td(h.Time(h.Title(format.UTC(m.At)), g.Text(format.Clock(m.At)))),
		h.Td(ui.QueueLink(ui.QueueURL(m.VHost, m.Queue), m.VHost, m.Queue)),
		ui.Amount(g.Text(format.Number(m.Count))), h.Td(ui.Outcome(m.Action)), h.Td(h.Class("faint"), ui.Name(m.Path)),
		ui.Amount(ui.Either(m.Late, ui.Class("bad", g.Text(format.Millis(m.WorstMillis))), g.Text(format.Millis(m.WorstMillis)))))
}

func (o *overview) alerts() g.Node {
	all := ui.Link("/alerts", g.Text("All alerts and silences"))
	if len(o.Alerts) == 0 {
		return ui.Card("alerts", "Alerts", all, ui.Empty(g.Text("No alerts.")))
	}
	return ui.Card("alerts", "Alerts", all, h.Ul(h.Class("alerts"), g.Map(o.Alerts, func(a alert.Status) g.Node {
		return h.Li(ui.Severity(a.Severity), g.Text(" "), h.Span(ui.Name(format.Sentence(a.Summary))), g.Text(" "), ui.AlertState(a.Severity, a.State))
	})))
}

func (o *overview) components() g.Node {
	if o.Remote {
		return ui.Card("parts", "Components", nil, ui.Facts(o.schedule(), ui.Fact("RabbitMQ", ui.Link("/rabbitmq", g.Text("its queues"))), ui.Fact("Up", g.Text(format.Since(o.Started)))))
	}
	publishers := ui.Class("good", g.Text("free to publish"))
	switch {
	case o.Blocked != "":
		publishers = ui.Class("bad", g.Text("blocked, "), ui.Name(o.Blocked))
	case o.InFlow > 0:
		publishers = g.Text(format.Plural(o.InFlow, "connection") + " waiting for consumers (flow)")
	}
	memory := format.Bytes(o.Memory)
	if o.MemoryMax > 0 {
		memory += " of " + format.Bytes(o.MemoryMax)
	}
	return ui.Card("parts", "Components", nil, ui.Facts(
		g.If(o.Watched, o.schedule()),
		g.If(o.ManualClock, ui.Fact("Clock", ui.Class("warn", g.Text("manual")), g.Text(": it stands at "+format.UTC(o.NowMillis)+" until it is moved"))),
		ui.Fact("Store", o.store()),
		ui.Fact("Publishers", publishers),
		ui.Fact("Memory", g.Text(memory)),
		ui.Fact("Clients", g.Text(format.Plural(o.Connections, "connection")+", "+format.Plural(o.Channels, "channel")+", "+format.Plural(o.Consumers, "consumer"))),
		ui.Fact("Queues", ui.Link("/queues", g.Text(format.Plural(o.Queues, "queue")))),
		ui.Fact("Up", g.Text(format.Since(o.Started)))))
}

func (o *overview) schedule() g.Node {
	is := g.Group{ui.Class("warn", g.Text("Redis is away")), g.Text("; this process fires")}
	switch o.Health.Schedule {
	case monitor.ScheduleUp:
		is = g.Group{ui.Class("good", g.Text("Redis")), g.Text(", fires on time")}
	case monitor.ScheduleOfPrimary:
		is = g.Group{ui.Class("good", g.Text("in the keepers of the queues"))}
	case monitor.ScheduleEmbedded:
		is = g.Group{ui.Class("good", g.Text("in this process"))}
	case monitor.ScheduleRebuilding:
		is = g.Group{ui.Class("warn", g.Text("rebuilding Redis")), g.Text("; this process fires")}
	}
	return ui.Fact("Schedule", is, ui.Faint(" since "+format.Instant(o.Health.Since)))
}

func (o *overview) store() g.Node {
	if o.DataDir == "" && o.ManualClock {
		return g.Text("memory only, for tests")
	}
	if o.DataDir == "" {
		return g.Group{ui.Class("warn", g.Text("memory only")), g.Text(": a restart loses every message; set CURFEW_DATA_DIR")}
	}
	return g.Group{ui.Class("good", g.Text("on disk")), g.Text(" "), ui.Class("faint", ui.Name(o.DataDir)), g.If(o.NewFolder, g.Text(", empty at this start"))}
}
