package overview

import (
	"slices"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/history"
)

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
	plot := func(kind, title string) g.Node {
		return h.Figure(h.Class("plot"), h.FigCaption(g.Text(title)), h.Div(h.Class("canvas"), h.Data("plot", kind)))
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
			plot("depth", depth), plot(rates, "Messages a second"), plot("lateness", "Lateness, p99, ms")),
		h.NoScript(h.P(h.Class("note"), g.Text("The charts need scripts. The table has the same numbers."))),
		c.marks(), c.table(),
	}
}

// table is the history in numbers, the latest first.
func (c *Trends) table() g.Node {
	headings := []string{"From (UTC)", "#Depth", "#Will expire"}
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
	return h.Details(h.Class("as-table"), h.Summary(g.Text("As a table")),
		h.P(h.Class("note"), g.Text("Each row is "+ui.Span(time.Duration(c.Read.Step)*time.Second)+". “Depth” and “Will expire” are the highest in that time.")),
		ui.Table(headings, rows))
}

func (c *Trends) row(from int64, p *history.Point) g.Node {
	number := func(n int64) g.Node {
		if n == 0 {
			return ui.Amount(ui.Faint("0"))
		}
		return ui.Amount(g.Text(ui.Number(n)))
	}
	late := ui.Faint("–")
	if p.Expired > 0 {
		late = g.Text(ui.Lateness(p.Lateness))
	}
	return h.Tr(
		h.Td(h.Time(h.Title(ui.UTC(from*1000)), g.Text(ui.Clock(from*1000)))), number(p.Depth), number(p.WillExpire),
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
		list = append(list, h.Li(h.Class("mark "+string(m.Kind)), h.Time(h.Title(ui.UTC(m.At)), g.Text(ui.Clock(m.At))), g.Text(" "), h.Span(ui.Name(m.Text))))
	}
	if c.Older > 0 {
		list = append(list, h.Li(ui.Faint("and "+ui.Number(c.Older)+" before these")))
	}
	return h.Ul(h.Class("marks"), h.Aria("label", "What happened in the last "+c.Label), list)
}
