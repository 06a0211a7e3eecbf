package overview

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
)

// fleet draws the grid, under the queues that stand out.
func (o *overview) fleet() g.Node {
	f := o.Fleet
	if f == nil {
		return nil
	}
	unknown := func(known bool, list g.Node, instead string) g.Node { return ui.Either(known, list, ui.Faint(instead)) }
	return ui.Card("fleet", "All queues", ui.Link("/queues", g.Text("As a list")),
		ui.Facts(
			g.If(f.Worst.VHost != "", ui.Fact("Worst virtual host", f.Worst.draw())),
			ui.Fact("Broken now", named(f.Broken, func(q *fleetQueue) string { return states[q.state].means }), more(f.Of[warned]+f.Of[broken]-len(f.Broken))),
			ui.Fact("Lost most, last hour", unknown(o.ExpiredToday >= 0, named(f.Losing, func(q *fleetQueue) string { return ui.Losses(q.Losses) }), "–")),
			ui.Fact("Most traffic", unknown(o.Published.Known, named(f.Traffic, (*fleetQueue).flow), measuring))),
		g.Map(f.Groups, fleetGroup),
		f.legend(),
		g.If(f.Hidden > 0, h.P(h.Class("note"), g.Text("These are the worst "+ui.Number(fleetCells)+". "+ui.Plural(f.Hidden, "queue")+" more are not shown."))))
}

// named are queues with something about each.
func named(list []fleetQueue, about func(*fleetQueue) string) g.Node {
	if len(list) == 0 {
		return ui.Faint("none")
	}
	nodes := g.Group{}
	for i := range list {
		q := &list[i]
		nodes = append(nodes, h.Span(h.Class("named"), ui.QueueLink(ui.QueueURL(q.VHost, q.Name), q.VHost, q.Name), g.Text(" "), h.B(g.Text(about(q)))), g.Text(" "))
	}
	return nodes
}

func more(n int) g.Node {
	if n <= 0 {
		return nil
	}
	return ui.Link("/incidents", g.Text("and "+ui.Number(n)+" more"))
}

func (w *fleetHost) draw() g.Node {
	parts := make([]string, 0, 3)
	if w.Of[broken] > 0 {
		parts = append(parts, ui.Plural(w.Of[broken], "queue")+" "+states[broken].means)
	}
	if w.Of[warned] > 0 {
		parts = append(parts, ui.Plural(w.Of[warned], "queue")+" "+states[warned].means)
	}
	if w.Lost+w.Rescued > 0 {
		parts = append(parts, ui.Losses(w.Losses)+" in the last hour")
	}
	return g.Group{ui.Link(ui.At("/queues", "vhost", w.VHost, "sort", "miss", "desc", "1"), ui.Name(w.VHost)), g.Text(" "), h.B(g.Text(strings.Join(parts, ", ")))}
}

func (q *fleetQueue) flow() string {
	return ui.PerSecond(q.in) + " in /s, " + ui.PerSecond(q.out) + " out /s"
}

// fleetGroup is a part of the grid. One cell of it is in the order of the tab key, and arrow keys lead to the others.
func fleetGroup(queues []fleetQueue) g.Node {
	first, cells := &queues[0], make(g.Group, len(queues))
	var place g.Node
	for i := range queues {
		q := &queues[i]
		cells[i] = h.A(states[q.state].class, ui.Href(ui.QueueURL(q.VHost, q.Name)), h.Title(q.says()), place)
		place = byArrows
	}
	purpose := first.Purpose.String()
	return g.Group{
		h.H3(ui.Link(ui.At("/queues", "vhost", first.VHost, "purpose", purpose, "sort", "miss", "desc", "1"), ui.Name(first.VHost), g.Text(" · "+purpose))),
		h.Div(h.Class("cells"), h.Role("group"), h.Aria("label", "Queues of "+ui.Visible(first.VHost)+" for "+purpose+". The arrow keys lead from one to another."), cells),
	}
}

// byArrows is of a cell that only the arrow keys reach.
var byArrows = h.TabIndex("-1")

// says is all about a queue that the grid knows, in one line.
func (q *fleetQueue) says() string {
	parts := make([]string, 0, 6)
	if q.state >= warned {
		parts = append(parts, states[q.state].means)
	}
	if q.Lost+q.Rescued > 0 {
		parts = append(parts, ui.Losses(q.Losses)+" in the last hour")
	}
	if q.atRisk > 0 {
		parts = append(parts, ui.Number(q.atRisk)+" at risk")
	}
	if q.Waiting > 0 {
		parts = append(parts, ui.Number(q.Waiting)+" waiting")
	}
	if q.traffic() > 0 {
		parts = append(parts, q.flow())
	} else if q.measured {
		parts = append(parts, states[idle].means)
	}
	return ui.Visible(q.Name) + ": " + strings.Join(append(parts, ui.Number(q.Ready)+" ready"), ", ")
}

func (f *fleet) legend() g.Node {
	list := g.Group{}
	for s := range states {
		one := states[len(states)-1-s]
		if n := f.Of[len(states)-1-s]; n > 0 {
			means := one.means
			if len(states)-1-s == int(idle) && !f.Measured {
				means = "others"
			}
			list = append(list, h.Span(h.Class("cells"), h.I(one.class), h.Span(h.B(g.Text(ui.Number(n))), g.Text(" "+means))), g.Text(" "))
		}
	}
	return h.P(h.Class("note legend"), list)
}
