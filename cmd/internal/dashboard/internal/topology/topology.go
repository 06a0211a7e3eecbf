package topology

import (
	"context"
	"net/http"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// Pages are those that delete queues, and those of messages.
type Pages struct {
	Operations *operate.Operations
	Site       ui.Site
}

// The pages, and where their forms are sent.
const (
	deleteQueue = "/queue/delete"
	getMessage  = "/queue/get"
	publish     = "/publish"

	queuesTab    = "/queues"
	exchangesTab = "/exchanges"
)

// PublishPath takes longer forms than the others.
const PublishPath = publish

// Group has the pages and the forms.
func (p Pages) Group() ui.Group {
	return ui.Group{
		Pages: map[string]ui.Page{
			deleteQueue: {Title: "Delete", Tab: queuesTab, Build: func(r *http.Request, v ui.Visitor) (ui.View, error) {
				d, err := p.deletion(r, v, r.URL.Query())
				return d.draw, err
			}},
			getMessage: {Title: "Get", Tab: queuesTab, Build: func(r *http.Request, v ui.Visitor) (ui.View, error) {
				page, err := p.getPage(r, v, r.URL.Query())
				return page.draw, err
			}},
			publish: {Title: "Publish", Tab: exchangesTab, Build: p.publishForm},
		},
		Changes: map[string]ui.Handler{deleteQueue: p.deleteQueue, getMessage: p.get, publish: p.publish},
	}
}

// queue is the queue that a query or a form names, for those who may do something with it.
func (p Pages) queue(r *http.Request, v ui.Visitor, values url.Values, do access.Operation) (operate.QueueDetail, error) {
	q, err := p.Operations.Queue(r.Context(), v.Actor, ui.Named(values))
	if err == nil && !operate.MayQueue(p.Operations.Access, v.Actor, do, q.VHost, q.Name) {
		err = operate.ErrNotYours
	}
	return q, err
}

// BindingsTo are the bindings that lead to a queue, without the default exchange's: rows of their list.
func BindingsTo(ctx context.Context, o *operate.Operations, by operate.Actor, at operate.QueueName) (rows []any, err error) {
	all, err := admin.ListBindings.Do(ctx, o.Access, by, admin.BindingFilter{VHost: at.VHost, Queue: at.Name})
	for _, row := range all {
		if row.Source != "" {
			rows = append(rows, row)
		}
	}
	return rows, err
}

// maxBindings bounds the bindings that the page of a queue lists.
const maxBindings = 200

// Bindings lists bindings, each with a link to remove it for those who may.
func Bindings(o *operate.Operations, a operate.Actor, rows []any) g.Node {
	shown := rows[:min(len(rows), maxBindings)]
	return g.Group{
		(&view{page: &page{OperationPages: OperationPages{Operations: o}}, actor: a}).table(&card{op: admin.ListBindings.Op, rows: shown}),
		g.If(len(rows) > len(shown), h.P(h.Class("note"), g.Text("The first "+ui.Number(len(shown))+" of "+ui.Number(len(rows))+"."))),
	}
}
