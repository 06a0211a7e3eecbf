package topology

import (
	"context"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// Holders lists who holds messages of a queue or may get them; nil: nobody does.
func Holders(ctx context.Context, o *operate.Operations, by operate.Actor, at operate.QueueName) (g.Node, error) {
	list, err := admin.ListHolders.Do(ctx, o, by, admin.HolderFilter{QueueFilter: operate.QueueFilter{VHost: at.VHost, Queue: at.Name}})
	if len(list) == 0 {
		return nil, err
	}
	return tableOf(o, by, admin.ListHolders.Op, operate.Rows(list), "vhost", "at", "waiting"), nil
}

// clientsNamed is how many clients of a queue a list names.
const clientsNamed = 3

// Clients names the clients of a queue's consumers, each once, in their order. Those that hold messages past their deadlines say how many.
func Clients(list []operate.Consumer) g.Node {
	var first []*operate.Consumer
	held := map[string]int{}
	for i := range list {
		name := list[i].Client.Title(list[i].User)
		if _, known := held[name]; !known {
			first = append(first, &list[i])
		}
		held[name] += list[i].PastDeadline
	}
	nodes := g.Group{}
	for _, c := range first[:min(len(first), clientsNamed)] {
		name := c.Client.Title(c.User)
		nodes = append(nodes, h.Div(ui.Link(ui.At("/connection", "name", c.Connection), ui.Name(name)), g.If(held[name] > 0, ui.Class("bad", g.Text(" holds "+ui.Number(held[name])+" past deadline")))))
	}
	return g.Group{nodes, g.If(len(first) > clientsNamed, h.Div(ui.Faint("and "+ui.Number(len(first)-clientsNamed)+" more")))}
}
