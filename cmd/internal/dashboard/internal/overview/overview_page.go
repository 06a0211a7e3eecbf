package overview

import (
	"cmp"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor"
	"curfew/monitor/history"
	"curfew/monitor/incident"
)

// measuring stands for a rate that is not known yet.
const measuring = "measuring"

func (o *overview) draw(*ui.Info) ui.Drawing {
	columns := func(parts ...g.Node) g.Node { return h.Div(append([]g.Node{h.Class("columns")}, parts...)...) }
	live := g.Group{o.verdicts(), o.figures(), o.start(), o.fleet(), o.Timeline.draw()}
	if o.Watched {
		live = append(live, columns(o.forecasts(), o.components()), o.History.Draw(), columns(o.lateness(), o.expired()))
	} else {
		live = append(live, o.History.Draw(), o.components())
	}
	return ui.Drawing{Charts: o.History != nil, Live: live}
}

// start shows what to do with an empty Curfew.
func (o *overview) start() g.Node {
	if o.Broker == "" || o.Queues > 0 {
		return nil
	}
	return ui.Card("start", "Start here", nil, ui.Facts(
		ui.Fact("Clients connect to", ui.Code(o.Broker)),
		ui.Fact("Or fill it with examples", ui.Code("curfew demo --against "+o.Site))))
}

// verdicts is the banner: the incidents, or that all is well. What changed stands beside them, or on a phone below them.
func (o *overview) verdicts() g.Node {
	list := o.Incidents[:min(len(o.Incidents), bannerIncidents)]
	others := len(o.Incidents) - len(list)
	where, more, inMemory := o.Storage()
	whole := min(len(list), bannerWhole)
	said := map[string]bool{}
	incidents := func(list []incident.Incident, whole bool) g.Node {
		return g.Map(list, func(i incident.Incident) g.Node { return o.incident(&i, whole, said) })
	}
	return h.Section(h.Role("status"), h.Aria("label", "State"), h.Data("looked-at", o.LookedAt.Format(time.RFC3339Nano)), g.If(len(o.Changed) > 0, h.Class("state")),
		o.verdict(), incidents(list[:whole], true), incidents(list[whole:], false),
		g.If(others > 0, h.P(ui.Link("/incidents", g.Text(ui.Plural(others, "more incident"))))), o.changes(),
		g.Iff(o.Next != nil, o.next),
		g.If(inMemory && !o.Remote, h.P(h.Class("verdict brief warn"), g.Text("Messages are in "+where+": "+more))),
		g.Map(o.Over, func(i incident.Incident) g.Node {
			return h.P(h.Class("verdict brief good"), g.Text("Over since "+ui.Clock(i.Ended.UnixMilli())+" UTC, after "+ui.Span(i.Ended.Sub(i.Since).Truncate(time.Second))+": "), ui.Link("/incidents#incident-"+i.ID, ui.Name(i.Summary)))
		}))
}

// verdict says how bad it is and, where something is wrong, that all deadlines are watched nevertheless.
func (o *overview) verdict() g.Node {
	if o.Verdict == incident.OK {
		late := ui.Either(incident.MayBeLate(o.Incidents), g.Text("but some may have fired late"), g.Text("and none is late"+deadline.LateBesides(o.Health.Held)))
		return h.Div(h.Class("verdict good"), h.H1(g.Text("All is well"), g.If(o.Watched, g.Group{g.Text(": all deadlines are watched, "), late})))
	}
	n := map[incident.Level]int{}
	for i := range o.Incidents {
		n[o.Incidents[i].Level]++
	}
	return h.H1(g.Text("Not all is well: "+ui.Plural(n[incident.Critical], "critical incident")+", "+ui.Plural(n[incident.Warning], "warning")+"."),
		g.If(o.Watched && incident.AllWatched(o.Incidents), ui.Faint(" All deadlines are watched.")))
}

// next is the loss that is coming.
func (o *overview) next() g.Node {
	n := o.Next
	will := " will " + cmp.Or(o.fates[[2]string{n.VHost, n.Queue}], "lose") + " "
	return h.P(h.Class("verdict brief warn"), g.Text("Next: "), ui.QueueLink(ui.QueueURL(n.VHost, n.Queue), n.VHost, n.Queue),
		g.Text(will+ui.Plural(n.AtRisk, "message")+", the first at "+ui.Clock(n.FirstMiss)+" UTC, "+ui.Until(n.FirstMiss, o.NowMillis)))
}

// changes are what changed in the last hours, besides the incidents.
func (o *overview) changes() g.Node {
	if len(o.Changed) == 0 {
		return nil
	}
	return h.Section(h.Class("changed"), h.H2(g.Text("What changed")), h.Ul(h.Class("marks"), g.Map(o.Changed, func(m history.Mark) g.Node { return mark(&m) })))
}

// incident is one in the banner. In brief it has the first thing to do, with the page or the command for it, and where messages
// are lost the command that ends that. What is to be done is left out if
// the incidents above, of the same condition, have said it.
func (o *overview) incident(i *incident.Incident, whole bool, said map[string]bool) g.Node {
	first, _, _ := strings.Cut(i.Do, ". ")
	again := said[first] && (!whole || said[i.Do])
	said[first], said[i.Do] = true, true
	brief := ""
	if !again {
		brief = strings.TrimSuffix(first, ".") + "."
	}
	if parts := strings.SplitN(i.Do, "`", 3); i.Lost > 0 && len(parts) == 3 && !strings.Contains(brief, "`") { // each queue has its own command
		brief += " `" + parts[1] + "`"
	}
	look, class := ui.Link(i.Page, g.Text(opens(i.Page))), "verdict "+ui.RiskClass(i.Level == incident.Critical)
	if i.Page == "/" { // this one
		look = ui.Code(i.Command)
	}
	queues := i.Worst[:min(len(i.Worst), bannerQueues)]
	if len(queues) == 1 { // the heading says it
		queues = nil
	}
	if !whole {
		class += " brief"
	}
	return h.Div(h.Class(class),
		h.H2(ui.Link("/incidents#incident-"+i.ID, ui.Name(i.Summary))),
		g.If(whole, h.Div(h.Class("whole"), g.Map(queues, func(q incident.Affected) g.Node {
			return h.P(h.B(ui.QueueLink(ui.QueueURL(q.VHost, q.Queue), q.VHost, q.Queue)), g.Text(" "), ui.Name(q.Text))
		}), g.If(!again, h.P(ui.Advice(i.Do))))),
		g.If(brief != "", h.P(h.Class("first"), ui.Advice(strings.TrimSpace(brief)))),
		h.P(look, ui.Faint(" "+o.since(i))))
}

func (o *overview) since(i *incident.Incident) string {
	since := "Since " + ui.Clock(i.Since.UnixMilli()) + " UTC, for " + ui.Millis(max(o.NowMillis-i.Since.UnixMilli(), 0))
	if i.Losing != nil {
		since += ", losing messages since " + ui.Clock(i.Losing.UnixMilli()) + " UTC"
	}
	if i.Ack != nil {
		since += ", acknowledged by " + i.Ack.By
	}
	return since
}

func (o *overview) figures() g.Node {
	today := "–"
	if o.Today.Expired >= 0 {
		today = ui.Number(o.Today.Expired)
	}
	return ui.Figures(
		ui.Figure("Deadlines ahead", g.Text(ui.Number(o.Health.Pending))),
		ui.Figure("At risk", g.If(o.AtRisk > 0, h.Class(ui.RiskClass(o.NearlyDue))), h.Title("messages that will expire though they should be consumed"), g.Text(ui.Number(o.AtRisk)),
			g.If(o.AsMeant > 0, h.Div(ui.Faint(ui.Number(o.AsMeant)+" more expire as meant")))),
		ui.Figure("Lateness, p99", h.Title("of the last hour"), g.Text(cmp.Or(o.Late, "–"))),
		ui.Figure("Lateness, max", h.Title("in the last hour, no message left its queue later after its deadline"), g.Text(cmp.Or(o.Latest, "–"))),
		g.If(!o.Remote, ui.Figure("Lost, last hour", ui.Lost(o.Losses))),
		ui.Figure("Expired, 24 h", h.Title("messages of all queues, in the last 24 hours, by what their queue was for then"), g.Text(today),
			g.If(o.Today.Meant > 0, h.Div(ui.Faint(ui.Number(o.Today.Meant)+" of them meant")))),
		g.If(!o.Remote, g.Group{
			ui.Figure("Ready", g.Text(ui.Number(o.Ready))),
			ui.Figure("Unacked", g.Text(ui.Number(o.Unacked))),
			ui.Figure("Published /s", ui.Either(o.Published.Known, ui.Rate(o.Published), ui.Faint(measuring))),
			ui.Figure("Delivered /s", ui.Either(o.Delivered.Known, ui.Rate(o.Delivered), ui.Faint(measuring))),
		}))
}

func (o *overview) forecasts() g.Node {
	var more g.Node
	if o.MoreForecasts > 0 {
		more = ui.Link("/queues?sort=miss&desc=1", g.Text(ui.Number(o.MoreForecasts)+" more"))
	}
	if len(o.Forecasts) == 0 {
		return ui.Card("forecast", "Forecast by queue", more, ui.Empty(g.Text("No messages with deadlines wait in any queue.")))
	}
	return ui.Card("forecast", "Forecast by queue", more, ui.Table([]string{"Queue", "#Deadlines", "#Drain /s", "#At risk", "#First expires"},
		g.Map(o.Forecasts, func(f deadline.Forecast) g.Node { return o.forecast(&f) })),
		g.If(o.NearlyDue, h.P(h.Class("note"), ui.Class("bad", g.Text("Red")), g.Text(": nearly due. Half the lifetime of the first message to expire has passed."))))
}

func (o *overview) forecast(f *deadline.Forecast) g.Node {
	first := ui.Faint("none")
	if f.FirstMiss != 0 {
		first = g.Text(ui.Until(f.FirstMiss, o.NowMillis))
	}
	return h.Tr(
		h.Td(ui.QueueLink(ui.QueueURL(f.VHost, f.Queue), f.VHost, f.Queue)),
		ui.Amount(ui.Deadlines(f)), ui.Amount(g.Text(ui.PerSecond(f.Rate))), ui.Amount(ui.AtRisk(f)), ui.Amount(first))
}

func (o *overview) lateness() g.Node {
	l := o.Histogram
	views, over := ui.Choices("Span of the lateness", l.Choices), "in "+ui.Span(time.Since(o.Started))
	if l.Span > 0 {
		over = "in the last " + ui.Span(l.Span)
	}
	switch {
	case l.Total > 0:
		return ui.Card("lateness", "Lateness", views, l.Draw(over))
	case l.Span > 0:
		return ui.Card("lateness", "Lateness", views, ui.Empty(g.Text("Nothing expired "+over+".")))
	}
	return ui.Card("lateness", "Lateness", nil, ui.Empty(g.Text("Nothing expired since Curfew started "+ui.Span(time.Since(o.Started))+" ago.")))
}

func (o *overview) expired() g.Node {
	var all g.Node
	if o.Audited {
		all = ui.Link("/audit?reason=expired", g.Text("Search all"))
	}
	list := ui.Empty(g.Text("No message expired since Curfew started. Messages that expire are listed here with their lateness."))
	if len(o.RecentExpiries) > 0 {
		list = ui.Table([]string{"When (UTC)", "Queue", "#Messages", "Outcome", "Path", "#Lateness"}, g.Map(o.RecentExpiries, func(m monitor.RecentExpiry) g.Node {
			return h.Tr(
				h.Td(h.Time(h.Title(ui.UTC(m.At)), g.Text(ui.Clock(m.At)))),
				h.Td(ui.QueueLink(ui.QueueURL(m.VHost, m.Queue), m.VHost, m.Queue)),
				ui.Amount(g.Text(ui.Number(m.Count))), h.Td(ui.Outcome(m.Action)), h.Td(h.Class("faint"), ui.Name(m.Path)),
				ui.Amount(ui.Either(m.Late, ui.Class("bad", g.Text(ui.Millis(m.WorstMillis))), g.Text(ui.Millis(m.WorstMillis))), g.If(m.Path == deadline.Requeued.String(), ui.Faint(" "+deadline.HeldLong))))
		}))
	}
	return h.Div(h.Class("wide"), ui.Card("expired", "Expired messages", all, list))
}

func (o *overview) components() g.Node {
	if o.Remote {
		return ui.Card("parts", "Components", nil, ui.Facts(o.schedule(), ui.Fact("RabbitMQ", ui.Link("/rabbitmq", g.Text("its queues"))), ui.Fact("Up", g.Text(ui.Span(time.Since(o.Started))))))
	}
	publishers := ui.Class("good", g.Text("free to publish"))
	switch {
	case o.Blocked != "":
		publishers = ui.Class("bad", g.Text("blocked, "), ui.Name(o.Blocked))
	case o.InFlow > 0:
		publishers = g.Text(ui.Plural(o.InFlow, "connection") + " waiting for consumers (flow)")
	}
	memory := ui.Bytes(o.Memory)
	if o.MemoryMax > 0 {
		memory += " of " + ui.Bytes(o.MemoryMax)
	}
	where, more, warn := o.Storage()
	return ui.Card("parts", "Components", nil, ui.Facts(
		g.If(o.Watched, o.schedule()),
		g.If(o.ManualClock, ui.Fact("Clock", ui.Class("warn", g.Text("manual")), g.Text(": it stands at "+ui.UTC(o.NowMillis)+" until it is moved"))),
		ui.Fact("Store", ui.Class(goodIf(!warn), g.Text(where)), g.Text(": "), ui.Name(more)),
		ui.Fact("Publishers", publishers),
		ui.Fact("Memory", g.Text(memory)),
		ui.Fact("Clients", g.Text(ui.Plural(o.Connections, "connection")+", "+ui.Plural(o.Channels, "channel")+", "+ui.Plural(o.Consumers, "consumer"))),
		ui.Fact("Queues", ui.Link("/queues", g.Text(ui.Plural(o.Queues, "queue")))),
		ui.Fact("Up", g.Text(ui.Span(time.Since(o.Started))))))
}

func (o *overview) schedule() g.Node {
	which, then, well := o.Health.Schedule.Says()
	return ui.Fact("Schedule", ui.Class(goodIf(well), g.Text(which)), g.Text(then+" "),
		h.Time(h.Title("since "+ui.Instant(o.Health.Since)), g.Text("for "+ui.Span(time.Since(o.Health.Since)))))
}

func goodIf(well bool) string {
	if well {
		return "good"
	}
	return "warn"
}
