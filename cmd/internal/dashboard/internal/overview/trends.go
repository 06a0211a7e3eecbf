package overview

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/history"
)

// numbersPath is where the script gets the numbers.
const numbersPath = "/history"

// ranges are the spans to choose from, by the name in the URL. The first is the default.
var ranges = []struct {
	name, label string
	span        time.Duration
}{
	{"15m", "15 min", 15 * time.Minute}, {"1h", "1 h", time.Hour}, {"6h", "6 h", 6 * time.Hour}, {"24h", "24 h", 24 * time.Hour},
}

const (
	chartPoints = 360
	// tableRows is how many rows the table has at most, and markRows how many marks are listed.
	tableRows = 24
	markRows  = 8
	// reach is which part of the span is near an instant, on each side; the script has it, too.
	reach = 48
)

// Trends is the history of a queue, or of all queues, over a span.
type Trends struct {
	Label   string // of the span
	Choices []ui.Choice
	Source  string // of the numbers, for the script
	Read    history.Read
	Traffic bool
	Queue   string // "": all
	Older   int    // marks that are not listed
	At      int64  // the instant that somebody looks at, Unix s; 0: none
	Near    []history.Mark
	asked   url.Values
	path    string
	span    time.Duration
}

// NewTrends reads the history that a page at path shows, over the span that its query names as "range", and what
// changed near the instant that it names as "at". vhost and queue are empty for all queues. It is
// nil without a history.
func NewTrends(h *history.History, path string, q url.Values, vhost, queue string) *Trends {
	if h == nil {
		return nil
	}
	c := &Trends{Traffic: h.Traffic, Queue: queue, asked: q, path: path}
	chosen := ranges[0]
	for _, r := range ranges {
		if r.name == q.Get("range") {
			chosen = r
		}
	}
	for _, r := range ranges {
		c.Choices = append(c.Choices, ui.Views(path, q, "", "range", chosen.name, r.name, r.label)...)
	}
	ask := url.Values{"span": {chosen.name}, "points": {strconv.Itoa(chartPoints)}}
	if queue != "" {
		ask.Set("vhost", vhost)
		ask.Set("queue", queue)
	}
	c.Source, c.Label = numbersPath+"?"+ask.Encode(), chosen.label
	c.Read = h.Read(history.Request{VHost: vhost, Queue: queue, Span: chosen.span, Points: tableRows, Partial: true})
	c.span = chosen.span
	if at, err := strconv.ParseInt(q.Get("at"), 10, 36); err == nil && at > 0 { // up to the year 3058: in ms it is an int64, and a date for the script
		c.At, c.Near = at, near(c.Read.Marks, at*1000, chosen.span/reach)
	}
	if more := len(c.Read.Marks) - markRows; more > 0 {
		c.Read.Marks, c.Older = c.Read.Marks[more:], more
	}
	return c
}

// near are the marks that are no further away from an instant, in Unix ms, or else the last one before it and the first one after it.
func near(marks []history.Mark, at int64, most time.Duration) (list []history.Mark) {
	from, after := 0, 0 // the first that is near, and the first that is later than those
	for _, m := range marks {
		if m.At < at-most.Milliseconds() {
			from++
		}
		if m.At <= at+most.Milliseconds() {
			after++
		}
	}
	if from == after {
		from, after = max(from-1, 0), min(after+1, len(marks))
	}
	return marks[from:after]
}

// Draw shows the card. It may be in the live part of a page: the charts update themselves.
func (c *Trends) Draw() g.Node {
	if c == nil {
		return nil
	}
	return ui.Card("history", "History", ui.Choices("Time range", c.Choices), c.content())
}

func (c *Trends) content() g.Node {
	switch {
	case c.Read.Full:
		return ui.Empty(g.Text("This queue has no history of its own: 1,000 other queues have one, which is the limit. It counts in the history on the first page."))
	case !c.Read.Known:
		return ui.Empty(g.Text("Nothing has happened in this queue in the last day."))
	}
	plot := func(class, kind, title string) g.Node {
		return h.Figure(h.Class(class), h.FigCaption(g.Text(title)), h.Div(h.Class("canvas"), h.Data("plot", kind)))
	}
	depth := "Messages in queues"
	if c.Queue != "" {
		depth = "Messages in the queue"
	}
	rates := "traffic"
	if !c.Traffic {
		rates = "expiries"
	}
	return g.Group{
		h.Div(h.Class("plots"), h.Data("keep", c.Source), h.Data("history", c.Source),
			plot("plot wide", "lateness", "Lateness, p99, ms, and what changed"), c.slider(), plot("plot", "depth", depth), plot("plot", rates, "Messages a second")),
		h.NoScript(h.P(h.Class("note"), g.Text("The charts need scripts. The table has the same numbers."))),
		c.marks(), c.table(),
	}
}

// table is the history in numbers, the latest first.
func (c *Trends) table() g.Node {
	headings := []string{"From (UTC)", "#Depth", "#At risk"}
	if c.Traffic {
		headings = append(headings, "#Published", "#Delivered")
	}
	headings = append(headings, "#Expired", "#Late", "#Lateness, p99")
	rows := g.Group{}
	for i, p := range slices.Backward(c.Read.Points) {
		if p.Known {
			rows = append(rows, c.row(c.Read.From+int64(i)*c.Read.Step, &p))
		}
	}
	if len(rows) == 0 {
		return ui.Empty(g.Text("The first numbers of this span appear within a minute."))
	}
	note := h.P(h.Class("note"), g.Text("Each row is "+ui.Span(time.Duration(c.Read.Step)*time.Second)+". “Depth” and “At risk” are the highest in that time."))
	return ui.AsTable(note, headings, rows)
}

func (c *Trends) row(from int64, p *history.Point) g.Node {
	number := func(n int64) g.Node { return ui.Amount(ui.OrFaint(n)) }
	late := ui.Faint("–")
	if p.Expired > 0 {
		late = g.Text(ui.Lateness(p.Lateness))
	}
	return h.Tr(
		h.Td(h.Time(h.Title(ui.UTC(from*1000)), g.Text(ui.Clock(from*1000)))), number(p.Depth), number(p.AtRisk),
		g.If(c.Traffic, g.Group{number(p.Published), number(p.Delivered)}),
		number(p.Expired), number(p.Late), ui.Amount(late))
}

// marks lists what else happened, the latest first.
func (c *Trends) marks() g.Node {
	if len(c.Read.Marks) == 0 {
		return nil
	}
	list := g.Group{}
	for _, m := range slices.Backward(c.Read.Marks) {
		list = append(list, mark(&m))
	}
	if c.Older > 0 {
		list = append(list, h.Li(ui.Faint("and "+ui.Number(c.Older)+" before these")))
	}
	return h.Ul(h.Class("marks"), h.Aria("label", "What happened in the last "+c.Label), list)
}

// mark is a line about something that happened, with a link to what it is about.
func mark(m *history.Mark) g.Node {
	return h.Li(h.Class("mark "+string(m.Kind)), h.Time(h.Title(ui.UTC(m.At)), g.Text(ui.Clock(m.At))), g.Text(" "), ui.Link(m.Page, ui.Name(m.Text)))
}

// slider chooses an instant on the axis of the charts, and lists what changed near it. Without scripts it is sent as a form.
func (c *Trends) slider() g.Node {
	first, last := c.Read.From, c.Read.From+int64(len(c.Read.Points))*c.Read.Step
	at, when := last, "now"
	if c.At != 0 {
		at, when = min(max(c.At, first), last), ui.UTC(c.At*1000)
	}
	number := func(name string, n int64) g.Node { return g.Attr(name, strconv.FormatInt(n, 10)) }
	hidden := g.Group{}
	for _, name := range slices.Sorted(maps.Keys(c.asked)) {
		if name != "at" {
			hidden = append(hidden, ui.Hidden(name, c.asked.Get(name)))
		}
	}
	another := func(by, text string) g.Node {
		return h.Button(h.Type("button"), h.Class("quiet"), h.Data("by", by), g.Attr("hidden"), g.Text(text))
	}
	return h.Form(h.Class("scrub wide"), h.Method("get"), h.Action(c.path), hidden,
		h.Label(g.Text("What changed at "), g.El("output", h.For("scrub"), g.Text(when)),
			h.Input(h.Type("range"), h.ID("scrub"), h.Name("at"), number("min", first), number("max", last), number("step", max(int64(c.span.Seconds())/chartPoints, 1)),
				number("value", at), g.If(c.At != 0, g.Group{number("data-at", c.At), h.AutoFocus()}))), // the browser scrolls to it
		another("-1", "← Earlier change"), g.Text(" "), another("1", "Later change →"), h.NoScript(ui.Button("Show")),
		h.Ul(h.Class("marks"), h.Aria("label", "What changed then"), g.Map(c.Near, func(m history.Mark) g.Node { return mark(&m) })))
}
