package overview

import (
	"cmp"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/incident"
)

const (
	// fleetCells is how many queues the grid has: those in the worst state.
	fleetCells = 1_000
	// fleetNames is how many queues each line above it names.
	fleetNames = 3
)

// state is that of a queue in the grid. The worst is the last.
type state uint8

const (
	idle state = iota
	busy
	risky
	lossy
	warned
	broken
)

// states have the class and the meaning of each.
var states = [...]struct {
	class g.Node
	means string
}{
	idle: {h.Class("idle"), "without traffic"}, busy: {h.Class("busy"), "with traffic"}, risky: {h.Class("risk"), "with messages at risk"},
	lossy: {h.Class("lost"), "lost messages in the last hour"}, warned: {h.Class("warned"), "in a warning"}, broken: {h.Class("broken"), "in a critical incident"},
}

// fleetQueue is a queue in the grid.
type fleetQueue struct {
	*operate.Queue
	operate.Losses
	state    state
	place    int     // among the queues in incidents
	atRisk   int     // messages whose expiry would be a loss
	in, out  float64 // messages a second
	traffic  float64 // their sum
	measured bool    // they are known
}

// fleetHost is a virtual host in the grid.
type fleetHost struct {
	VHost string
	Of    [len(states)]int // queues
	operate.Losses
}

// fleet is the grid of all queues, and which of them stand out.
type fleet struct {
	Groups                  [][]fleetQueue // each of one virtual host and purpose
	Of                      [len(states)]int
	Hidden                  int
	Measured                bool         // it is known which queues have traffic
	Worst                   fleetHost    // the zero value: nothing is wrong, or there is one virtual host
	Broken, Losing, Traffic []fleetQueue // the first ones
}

// newFleet makes the grid of the queues.
func newFleet(queues []*operate.Queue, seen *incident.View, rates *operate.Rates) *fleet {
	f, forecasts := &fleet{Hidden: max(len(queues)-fleetCells, 0)}, incident.ByQueue(seen.Forecasts)
	all := make([]fleetQueue, len(queues))
	for i, q := range queues {
		one, name := &all[i], incident.QueueName{VHost: q.VHost, Name: q.Name}
		one.Queue, one.Losses = q, q.LossesIn(seen.Hour)
		if f := forecasts[name]; f != nil {
			one.atRisk = f.AtRisk
		}
		in, out := rates.Flow(q)
		one.in, one.out, one.traffic, one.measured = in.PerSecond, out.PerSecond, in.PerSecond+out.PerSecond, in.Known
		f.Measured = f.Measured || in.Known
		concern := seen.Queues[name]
		one.state, one.place = one.judge(concern.Level), concern.Place
		f.Of[one.state]++
	}
	f.Worst = worstHost(all)
	f.Broken = first(all, fleetNames, worstFirst, func(q *fleetQueue) bool { return q.state >= warned })
	f.Losing = first(all, fleetNames, func(a, b fleetQueue) int { return b.Losses.Compare(a.Losses) }, func(q *fleetQueue) bool { return q.Lost+q.Rescued > 0 })
	f.Traffic = first(all, fleetNames, func(a, b fleetQueue) int { return cmp.Compare(b.traffic, a.traffic) }, func(q *fleetQueue) bool { return q.traffic > 0 })
	if f.Hidden > 0 {
		all = first(all, fleetCells, worstFirst, func(*fleetQueue) bool { return true })
	}
	slices.SortFunc(all, func(a, b fleetQueue) int { // a queue keeps its place whatever happens to it
		return cmp.Or(strings.Compare(a.VHost, b.VHost), cmp.Compare(a.Purpose, b.Purpose), strings.Compare(a.Name, b.Name))
	})
	for len(all) > 0 {
		head := all[0]
		n := slices.IndexFunc(all, func(q fleetQueue) bool { return q.VHost != head.VHost || q.Purpose != head.Purpose })
		if n < 0 {
			n = len(all)
		}
		f.Groups, all = append(f.Groups, all[:n]), all[n:]
	}
	return f
}

// worstHost is the virtual host with most queues in critical incidents, then with most messages lost, then with most queues in warnings.
func worstHost(all []fleetQueue) (worst fleetHost) {
	hosts := map[string]fleetHost{}
	for i := range all {
		q := &all[i]
		of := hosts[q.VHost]
		of.VHost, of.Lost, of.Rescued = q.VHost, of.Lost+max(q.Lost, 0), of.Rescued+max(q.Rescued, 0)
		of.Of[q.state]++
		hosts[q.VHost] = of
	}
	if len(hosts) < 2 {
		return worst
	}
	for _, one := range hosts {
		if cmp.Or(cmp.Compare(one.Of[broken], worst.Of[broken]), cmp.Compare(one.Lost, worst.Lost), cmp.Compare(one.Of[warned], worst.Of[warned]), one.Losses.Compare(worst.Losses), strings.Compare(worst.VHost, one.VHost)) > 0 &&
			(one.Of[broken]+one.Of[warned] > 0 || one.Lost+one.Rescued > 0) {
			worst = one
		}
	}
	return worst
}

func (q *fleetQueue) judge(level incident.Level) state {
	switch {
	case level == incident.Critical:
		return broken
	case level == incident.Warning:
		return warned
	case q.Lost > 0:
		return lossy
	case q.atRisk > 0:
		return risky
	case q.traffic > 0:
		return busy
	}
	return idle
}

func worstFirst(a, b fleetQueue) int {
	return cmp.Or(cmp.Compare(b.state, a.state), cmp.Compare(a.place, b.place), b.Losses.Compare(a.Losses), cmp.Compare(b.atRisk, a.atRisk), cmp.Compare(b.traffic, a.traffic), cmp.Compare(a.ID, b.ID))
}

// first are the first n, in an order, of the queues that count. Only what may be among them is sorted.
func first(all []fleetQueue, n int, order func(a, b fleetQueue) int, counts func(*fleetQueue) bool) (list []fleetQueue) {
	cut := false // list[:n] is sorted, and what is not before its last is not among the first
	for i := range all {
		if !counts(&all[i]) || cut && order(all[i], list[n-1]) >= 0 {
			continue
		}
		if list = append(list, all[i]); len(list) == 2*n {
			slices.SortStableFunc(list, order)
			list, cut = list[:n], true
		}
	}
	slices.SortStableFunc(list, order)
	return list[:min(len(list), n)]
}

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
			ui.Fact("Lost most, last hour", unknown(o.Today.Expired >= 0, named(f.Losing, func(q *fleetQueue) string { return ui.Losses(q.Losses) }), "–")),
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
	if q.traffic > 0 {
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
