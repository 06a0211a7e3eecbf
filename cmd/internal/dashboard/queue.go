package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/overview"
	"curfew/cmd/internal/dashboard/internal/topology"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/incident"
)

const (
	// peekRows is how many messages one page shows, and peekBody how many bytes of each body.
	peekRows  = 20
	peekBody  = 2048
	maxOffset = 1_000_000
)

// queuePage is what the page of one queue shows.
type queuePage struct {
	operate.QueueDetail
	operate.Losses
	Forecast *deadline.Forecast // nil: no deadlines wait there
	Wrong    incident.Concern
	History  *overview.Trends
	Now      int64
	Peek     peek
	Changed  string // the result of a change just made; "": none
	Holders  g.Node // who holds its messages; nil: nobody does
	Bindings g.Node // that lead to it; nil: none
}

// peek is part of a queue's messages.
type peek struct {
	FromTail bool
	Bodies   bool
	Offset   int
	Messages []messageView
	More     bool // there are more after these
	Refused  bool // the user may not read the queue
	asked    url.Values
}

// messageView is a message as the pages show it.
type messageView struct {
	operate.Message
	Place int // in the queue, counted from 1 at the chosen end
	// Change is the URL of the page to change its deadline; "": this user may not.
	Change string
}

// changed has the outcomes of changes in words.
var changed = map[string]string{
	"rescheduled": "The message has its new deadline.",
	"expired":     "The message has expired.",
	"declared":    "Queue declared.",
	"held":        "A consumer holds the message. It stays with the consumer, and expires if it comes back.",
}

func (d *Dashboard) queue(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	detail, err := d.Operations.Queue(r.Context(), v.Actor, ui.Named(q))
	if err != nil {
		return nil, err
	}
	p := &queuePage{QueueDetail: detail, Now: d.state().NowMillis}
	p.Forecast = d.forecast(detail.VHost, detail.Name)
	seen := d.Incidents.View()
	p.Wrong, p.Losses = seen.Queues[incident.QueueName{VHost: detail.VHost, Name: detail.Name}], detail.LossesIn(seen.Hour)
	p.History = overview.NewTrends(d.History, "/queue", q, detail.VHost, detail.Name)
	p.Changed = changed[q.Get("changed")]
	if n, err := strconv.Atoi(q.Get("purged")); err == nil {
		p.Changed = ui.Plural(n, "message") + " deleted."
	}
	at := operate.QueueName{VHost: detail.VHost, Name: detail.Name} // a sub-queue has several names
	if p.Holders, err = topology.Holders(r.Context(), d.Operations, v.Actor, at); err != nil {
		return nil, err
	}
	if !v.Live { // the messages stay as they were when the page was opened
		if p.Bindings, err = topology.Bindings(r.Context(), d.Operations, v.Actor, at); err != nil {
			return nil, err
		}
		err = p.Peek.look(r.Context(), d.Operations, v.Actor, q)
	}
	return func(s *ui.Info) ui.Drawing {
		return ui.Drawing{
			Top: g.Group{
				ui.Crumbs("/queues", "Queues", p.VHost), h.H1(ui.Name(p.Name)), p.summary(),
				topology.QueueMenu(d.Operations, v.Actor, p.VHost, p.Name),
				ui.Done(p.Changed),
			},
			Live:   g.Group{p.figures(), p.warning(), p.holders(), p.History.Draw()},
			Bottom: g.Group{p.Peek.draw(s, p.Now), p.bindings(), p.settings()},
			Charts: p.History != nil,
		}
	}, err
}

// look gathers the messages that a query names by queue, end and offset.
func (p *peek) look(ctx context.Context, o *operate.Operations, by operate.Actor, q url.Values) error {
	p.asked, p.FromTail, p.Bodies = q, q.Get("from") == "tail", q.Get("bodies") == "1"
	p.Offset, _ = strconv.Atoi(q.Get("offset"))
	p.Offset = min(max(p.Offset, 0), maxOffset)
	at := ui.Named(q)
	want := messages.PeekRequest{VHost: at.VHost, Queue: at.Name, Encoding: "auto", From: "head", Tail: p.FromTail, Offset: p.Offset, Count: peekRows + 1}
	if p.Bodies {
		want.Truncate = peekBody
	}
	list, err := messages.Peek.Do(ctx, o, by, want)
	if operate.Refused(err) {
		p.Refused = true
		return nil
	}
	if err != nil {
		return err
	}
	p.More = len(list) > peekRows
	mayChange := o.May(by, messages.ChangeDeadline.Name, at)
	for i := range list[:min(len(list), peekRows)] {
		m := messageView{Message: list[i].Message, Place: p.Offset + i + 1}
		if mayChange {
			m.Change = ui.DeadlineURL(at.VHost, at.Name, m.QueueID, m.Seq)
		}
		p.Messages = append(p.Messages, m)
	}
	return nil
}

// summary shows how long messages live here, and where they go when they die.
func (p *queuePage) summary() g.Node {
	to := g.Group{g.Text("dead letters → "), deadLettersTo(&p.Queue)}
	switch {
	case p.Queue.Purpose == deadline.DeadLetters:
		to = g.Group{g.Text("dead letters wait here until they are replayed, moved or purged")}
	case !p.DeadLetters:
		to = g.Group{ui.Class("warn", g.Text("no dead-letter exchange: messages that expire are lost; set a policy with dead-letter-exchange"))}
	}
	return h.P(h.Class("summary"), ui.Bold("Time to live "), g.Text(ui.Visible(p.InWords().TimeToLive)), g.Text(" · "), to)
}

func (p *queuePage) figures() g.Node {
	ahead, drain := g.Text("0"), g.Text("–")
	if p.Forecast != nil {
		ahead, drain = ui.Deadlines(p.Forecast), g.Text(ui.PerSecond(p.Forecast.Rate))
	}
	return ui.Figures(
		ui.Figure("Ready", g.Text(ui.Number(p.Ready))),
		ui.Figure("Unacked", g.Text(ui.Number(p.Unacked))),
		g.If(p.Waiting > 0, ui.Figure("Waiting", g.Text(ui.Number(p.Waiting)))),
		ui.Figure("Consumers", g.If(p.Consumers == 0 && p.Ready > 0, h.Class("warn")), g.Text(ui.Number(p.Consumers))),
		ui.Figure("Deadlines", ahead),
		ui.Figure("At risk", ui.AtRisk(p.Forecast)),
		ui.Figure("Lost, last hour", ui.Lost(p.Losses)),
		ui.Figure("Drain /s", drain),
		ui.Figure("Came in", g.Text(ui.Number(p.Stats.Entered()))),
		ui.Figure("Acked", g.Text(ui.Number(p.Stats.Acked))))
}

// holders are the consumers that hold the queue's messages, or would get them.
func (p *queuePage) holders() g.Node {
	if p.Holders == nil {
		left := g.Text("")
		if d := p.Departed; d.Client != "" {
			left = g.Group{g.Text(" The last to leave was "), ui.Bold(ui.Visible(d.Client)), g.Text(", " + ui.Until(p.DepartedMillis, p.Now) + ".")}
		}
		return ui.Card("holders", "Who holds it", nil, ui.Empty(g.Text("No consumers, and no client holds a message."), left))
	}
	return ui.Card("holders", "Who holds it", nil, p.Holders)
}

func (p *queuePage) bindings() g.Node {
	if p.Bindings == nil {
		return ui.Card("bindings", "Bindings", nil, ui.Empty(g.Text("Only the default exchange routes here, by the queue's name.")))
	}
	return ui.Card("bindings", "Bindings", nil, p.Bindings)
}

// warning is the worst incident with the queue. If there is none it shows how many messages are at risk, and why.
func (p *queuePage) warning() g.Node {
	if p.Wrong.In != nil {
		return p.incident()
	}
	f := p.Forecast
	if f == nil || f.AtRisk == 0 {
		return nil
	}
	return h.P(h.Class("verdict "+ui.RiskClass(f.NearlyDue)), g.Text(incident.Risk(f, p.Now)+". Add consumers, or give messages more time."))
}

// incident says what the incident says everywhere, and what it says of this queue if another is worse.
func (p *queuePage) incident() g.Node {
	i := p.Wrong.In
	worst := len(i.Worst) > 0 && i.Worst[0].VHost == p.VHost && i.Worst[0].Queue == p.Name
	return h.Div(h.Class("verdict "+ui.RiskClass(p.Wrong.Level == incident.Critical)),
		h.P(ui.Severity(string(p.Wrong.Level)), g.Text(" "), h.B(ui.Link("/incidents#incident-"+i.ID, ui.Name(i.Summary)))),
		g.If(!worst, h.P(g.Text("This queue: "), ui.Name(p.Wrong.Text))),
		h.P(ui.Advice(i.Do), g.Text(" "), ui.Code(i.Command)))
}

func (p *peek) draw(s *ui.Info, now int64) g.Node {
	ends := ui.Views("/queue", p.asked, "offset", "from", map[bool]string{true: "tail"}[p.FromTail], "", "Head", "tail", "Tail")
	toggle := ui.Link(ui.With("/queue", p.asked, "bodies", "1"), g.Text("Show bodies"))
	if p.Bodies {
		toggle = ui.Link(ui.With("/queue", p.asked, "bodies", ""), g.Text("Hide bodies"))
	}
	return ui.Card("peek", "Messages", ui.Choices("View", ends, toggle), p.list(s, now))
}

func (p *peek) list(s *ui.Info, now int64) g.Node {
	switch {
	case p.Refused:
		return ui.Empty(g.Text(ui.MayNotRead))
	case len(p.Messages) == 0 && p.Offset > 0:
		return ui.Empty(g.Text("There are no more messages. "), ui.Link(ui.With("/queue", p.asked, "offset", ""), g.Text("Back to the beginning")), g.Text("."))
	case len(p.Messages) == 0:
		return ui.Empty(g.Text("The queue is empty."))
	}
	before, after := "", ""
	if p.Offset > 0 {
		before = ui.With("/queue", p.asked, "offset", strconv.Itoa(max(p.Offset-peekRows, 0)))
	}
	if p.More {
		after = ui.With("/queue", p.asked, "offset", strconv.Itoa(p.Offset+peekRows))
	}
	return g.Group{
		h.P(h.Class("faint"), g.Text("This page changes nothing: it does not mark messages as redelivered, nor change their order. As of "+ui.UTC(now)+".")),
		h.Ol(h.Class("messages"), g.Map(p.Messages, func(m messageView) g.Node { return m.draw(now) })),
		h.P(h.Class("pager"), ui.Spaced(ui.Follow("prev", before, "← Before"), ui.Follow("next", after, "After →"), ui.Link(s.Here, g.Text("Reload")))),
	}
}

func (p *queuePage) settings() g.Node {
	words := p.InWords()
	return ui.Card("set", "Settings", nil, ui.Facts(
		ui.Fact("Type", ui.Names(append([]string{p.Type}, p.features()...), nil)),
		ui.Fact("Size", g.Text(ui.Bytes(p.ReadyBytes+p.UnackedBytes)+", "+ui.Bytes(p.PersistentBytes)+" of it persistent")),
		g.If(p.Ready+p.Unacked+p.Waiting > 0, ui.Fact("Oldest message", g.Text("in the queue for "+ui.Span(p.OldestAge)))),
		ui.Fact("Purpose", ui.Name(words.Purpose)),
		ui.Fact("Dead letters", ui.Name(words.DeadLetters)),
		g.If(words.Objective != "", ui.Fact("Objective", g.Text(words.Objective))),
		ui.Fact("Time in queue", g.Text(words.TimeInQueue)),
		ui.Fact("Policy", ui.NameOr(p.Policy, ui.Faint("none"))),
		ui.Fact("Operator policy", ui.NameOr(p.OperatorPolicy, ui.Faint("none"))),
		g.If(p.ActiveConsumer != "", ui.Fact("Single active consumer", ui.Name(p.ActiveConsumer))),
		ui.Pairs(ui.Settings(p.Args), g.Text(" "), ui.Faint("argument")),
		ui.Pairs(ui.Settings(p.Effective), g.Text(" "), ui.Faint("by policy"))))
}

// features are the flags that the queue was declared with.
func (p *queuePage) features() (list []string) {
	for name, is := range map[string]bool{"durable": p.Durable, "exclusive": p.Exclusive, "deleted with its last consumer": p.AutoDelete} {
		if is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
