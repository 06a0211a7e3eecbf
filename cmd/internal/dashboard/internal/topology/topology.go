package topology

import (
	"context"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// Pages are those of operations.
type Pages struct {
	Operations *operate.Operations
	Site       ui.Site
}

// PublishPath takes longer forms than the others.
const PublishPath = "/publish"

// maxBindings bounds the bindings that the page of a queue lists.
const maxBindings = 200

// Bindings lists the bindings that lead to a queue, without the default exchange's, each with a link to remove it for those who may; nil: there are none.
func Bindings(ctx context.Context, o *operate.Operations, by operate.Actor, at operate.QueueName) (g.Node, error) {
	all, err := admin.ListBindings.Do(ctx, o, by, admin.BindingFilter{VHost: at.VHost, Queue: at.Name})
	var rows []any
	for _, row := range all {
		if row.Source != "" {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, err
	}
	shown := rows[:min(len(rows), maxBindings)]
	return g.Group{
		tableOf(o, by, admin.ListBindings.Op, shown),
		g.If(len(rows) > len(shown), h.P(h.Class("note"), g.Text("The first "+ui.Number(len(shown))+" of "+ui.Number(len(rows))+"."))),
	}, err
}
