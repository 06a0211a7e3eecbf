package letters

import (
	"maps"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func crumbs(vhost, queue string) g.Node {
	return h.P(h.Class("crumbs"), ui.Link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), ui.Link(URL(vhost, queue), ui.Name(queue)), g.Text(" · virtual host "), ui.Name(vhost))
}

func (p *plan) Draw(s *ui.Info) ui.Drawing {
	n, back := p.Run.Replayed, "Cancel"
	title := "Nothing would be replayed"
	switch {
	case !p.Form.OK():
		title = "Replay"
	case n > 0:
		title = "Replay " + format.Plural(n, "message") + "?"
	}
	return ui.Drawing{Live: g.Group{
		crumbs(p.VHost, p.Queue),
		h.H1(g.Text(title)),
		g.If(p.Form.OK(), g.Group{
			g.Map(p.warnings(), func(text string) g.Node { return h.P(h.Class("problem"), g.Text(text)) }),
			s.Change(replayPath, "doing", ui.Hidden("confirmed", "1"), p.fields(),
				g.If(n > 0, h.Button(h.Class("primary"), h.AutoFocus(), g.Text("Replay "+format.Plural(n, "message")))),
				ui.Link(URL(p.VHost, p.Queue), g.Text(back))),
			h.Div(h.Class("columns"),
				ui.Card("what", "What", nil, p.facts()),
				ui.Card("where", "Where they go", nil, p.targets())),
		}),
		ui.Card("how", "How", nil, p.options(s)),
	}}
}

// warnings are the reasons why a replay may be useless.
func (p *plan) warnings() (list []string) {
	for _, t := range p.Run.Targets[:min(len(p.Run.Targets), 10)] {
		name := format.Visible(t.Queue)
		switch {
		case t.Consumers > 0 && t.Expiring == 0:
			continue
		case t.Consumers > 0 && t.FirstMillis < time.Minute.Milliseconds():
			list = append(list, "Messages that are not consumed in "+name+" within "+format.Millis(t.FirstMillis)+" expire again"+backWords(&t, " and come")+"."+p.likely(&t))
		case t.Consumers > 0:
		case t.Expiring > 0:
			list = append(list, name+" has no consumers: "+format.Plural(t.Expiring, "message")+" would expire there again from "+format.Millis(t.FirstMillis)+" on"+backWords(&t, " and come")+".")
		default:
			list = append(list, name+" has no consumers: the messages would wait there.")
		}
	}
	return list
}

// likely estimates whether the messages for a queue will be consumed in time if its consumers keep their rate.
func (p *plan) likely(t *deadletters.Target) string {
	f, known := p.Forecasts[t.Queue]
	if !known || f.Ready == 0 {
		return ""
	}
	text := " " + format.Plural(f.Ready, "message") + " are already waiting there, "
	if f.Ready == 1 {
		text = " 1 message is already waiting there, "
	}
	if f.Rate == 0 {
		return text + "and none is consumed at present: expect them back."
	}
	takes := func(n int) int64 { return int64(float64(n) / f.Rate * 1000) }
	text += "and " + format.Rate(f.Rate) + " a second are consumed. At that rate it takes " + format.Millis(takes(f.Ready+t.Messages))
	switch {
	case takes(f.Ready+t.Messages) <= t.FirstMillis:
		return text + ": that is in time."
	case takes(f.Ready) >= t.LastMillis:
		return text + ": that is too late, so add consumers or let the messages live longer."
	}
	return text + ": for some of them that is too late."
}

// backWords are how the warning goes on if messages come back from a target.
func backWords(t *deadletters.Target, come string) string {
	if t.Back {
		return come + " back here"
	}
	return ""
}

func (p *plan) facts() g.Node {
	return ui.Facts(
		ui.Fact("Queue", ui.Name(p.Queue)), queryFacts(p.Query),
		ui.Fact("Examined", g.Text(format.Number(p.Run.Scanned))),
		ui.Fact("Match", g.Text(format.Number(p.Run.Matched))),
		ui.Fact("Would go", ui.Bold(format.Number(p.Run.Replayed))),
		g.Map(slices.Sorted(maps.Keys(p.Run.Skipped)), func(why deadletters.SkipReason) g.Node {
			return ui.Fact("Would stay", g.Text(format.Number(p.Run.Skipped[why])), g.Text(" "), ui.Faint(skippedWords(string(why))))
		}))
}

func (p *plan) targets() g.Node { return drawTargets(p.VHost, p.Run.Targets) }

// drawTargets lists where messages would go.
func drawTargets(vhost string, targets []deadletters.Target) g.Node {
	if len(targets) == 0 {
		return ui.Empty(g.Text("Nowhere."))
	}
	const most = 50
	return g.Group{
		ui.Table([]string{"Queue", "#Messages", "#Consumers", "Expire again"}, g.Map(targets[:min(len(targets), most)], func(t deadletters.Target) g.Node { return drawTarget(vhost, &t) })),
		g.If(len(targets) > most, h.P(h.Class("faint"), g.Text("and "+format.Plural(len(targets)-most, "other queue")))),
	}
}

func drawTarget(vhost string, t *deadletters.Target) g.Node {
	consumers := ui.Class("tag warn", g.Text("none"))
	if t.Consumers > 0 {
		consumers = g.Text(format.Number(t.Consumers))
	}
	expire := ui.Faint("no")
	if t.Expiring > 0 {
		text := format.Number(t.Expiring) + " in " + format.Millis(t.FirstMillis)
		if t.LastMillis-t.FirstMillis > 999 {
			text += " to " + format.Millis(t.LastMillis)
		}
		expire = g.Group{ui.Class("warn", g.Text(text)), g.If(t.Back, ui.Faint(", then back here"))}
	}
	return h.Tr(h.Td(ui.Link(ui.QueueURL(vhost, t.Queue), ui.Name(t.Queue))), ui.Amount(g.Text(format.Number(t.Messages))), ui.Amount(consumers), h.Td(expire))
}

// options is the form for another dry run with other options.
func (p *plan) options(s *ui.Info) g.Node {
	f := p.Form
	f.Values.Set("to", p.Order.To)
	f.Values.Set("ttl", p.Order.TTL)
	input := func(label, field, placeholder string) g.Node {
		return f.Field(label, field, "", h.MaxLength("255"), h.Placeholder(placeholder), g.Attr("size", strconv.Itoa(max(14, len(placeholder)+2))))
	}
	return s.Change(replayPath, "filter",
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), queryFields(p.Query),
		f.Choose("To", "to", "", deadletters.ToOrigin, "the exchange and key each was published with", deadletters.ToQueue, "the queue in which each first died",
			deadletters.ToOnward, "the exchange by which it came here", deadletters.ToExchange, "this exchange and key:"),
		input("Exchange", "to_exchange", "the default exchange"), input("Routing key", "to_key", "its own"),
		f.Choose("Time to live", "ttl", "", "fresh", "as when published, counted from now", "remaining", "the rest of it", "none", "only the queue's", "millis", "this long:"),
		input("Lives for", "ttl_of", "10m"),
		input("At most", "limit", "all"), input("Per second", "rate", "no limit"),
		f.Check("Keep the death history", "keep_deaths"),
		ui.Button("Dry run again"),
		h.P(h.Class("faint"), g.Text("A dry run moves nothing. A message leaves this queue only when another queue has it; messages that arrive after the dry run stay.")))
}

// fields are the hidden fields of the confirmed request.
func (p *plan) fields() g.Node {
	o := &p.Order
	limit, rate, keep := "", "", ""
	if o.Limit > 0 {
		limit = strconv.Itoa(o.Limit)
	}
	if o.Rate > 0 {
		rate = strconv.FormatFloat(o.Rate, 'g', -1, 64)
	}
	if o.KeepDeaths {
		keep = "1"
	}
	return g.Group{
		ui.Hidden("vhost", o.VHost), ui.Hidden("name", o.Queue), queryFields(p.fixed()), ui.Hidden("to", o.To), ui.Hidden("ttl", o.TTL),
		ui.HiddenIf("to_exchange", o.Exchange), ui.HiddenIf("to_key", o.Key), ui.HiddenIf("ttl_of", p.Form.Get("ttl_of")),
		ui.Hidden("position", p.Run.Position.String()),
		ui.HiddenIf("limit", limit), ui.HiddenIf("rate", rate), ui.HiddenIf("keep_deaths", keep),
	}
}

// fixed is the query with instants instead of durations, so that the messages that are confirmed are those that were shown.
func (c *chosen) fixed() deadletters.Query {
	q := maps.Clone(c.Query)
	for field, at := range map[string]time.Time{"since": c.Filter.Since, "before": c.Filter.Before} {
		if !at.IsZero() {
			q[field] = []string{at.UTC().Format(time.RFC3339Nano)}
		}
	}
	return q
}

// skippedReasons are, in words, why a replay leaves a message where it is.
var skippedReasons = map[string]string{
	"replayed_too_often": "were replayed too often", "no_origin": "never died, so their origin is unknown",
	"no_time_left": "have no time left: choose a new time to live", "unroutable": "would reach no queue", "target_full": "found their queue full",
	"leads_back": "would come back here", "gone": "were taken or have expired", "refused": "were refused",
}

func skippedWords(reason string) string {
	if words, ok := skippedReasons[reason]; ok {
		return words
	}
	return format.Visible(reason)
}
