package topology

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// Pages are those of operations, the one that gets a message, and the one that deletes queues.
type Pages struct {
	Operations *operate.Operations
	Site       ui.Site
}

// The pages, and where their forms are sent.
const (
	deleteQueue = "/queue/delete"
	getMessage  = "/queue/get"

	queuesTab = "/queues"
)

// PublishPath takes longer forms than the others.
const PublishPath = "/publish"

// Group has the pages and the forms.
func (p Pages) Group() ui.Group {
	group := p.operations()
	maps.Copy(group.Pages, map[string]ui.Page{
		deleteQueue: {Title: "Delete", Tab: queuesTab, Build: func(r *http.Request, v ui.Visitor) (ui.View, error) {
			d, err := p.deletion(r, v, r.URL.Query())
			return d.draw, err
		}},
		getMessage: {Title: "Get", Tab: queuesTab, Build: func(r *http.Request, v ui.Visitor) (ui.View, error) {
			page, err := p.getPage(r, v, r.URL.Query())
			return page.draw, err
		}},
	})
	maps.Copy(group.Changes, map[string]ui.Handler{deleteQueue: p.deleteQueue, getMessage: p.get})
	return group
}

// queue is the queue that a query or a form names, for those who may do something with it.
func (p Pages) queue(r *http.Request, v ui.Visitor, values url.Values, do access.Operation) (operate.QueueDetail, error) {
	q, err := p.Operations.Queue(r.Context(), v.Actor, ui.Named(values))
	if err == nil && !operate.MayQueue(p.Operations, v.Actor, do, q.VHost, q.Name) {
		err = operate.ErrNotYours
	}
	return q, err
}

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
