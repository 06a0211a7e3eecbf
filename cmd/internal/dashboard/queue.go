package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/overview"
	"curfew/cmd/internal/dashboard/internal/topology"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor"
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
	Forecast   *monitor.Forecast // nil: no deadlines wait there
	Wrong      incident.Concern
	History    *overview.Trends
	Now        int64
	Peek       peek
	Changed    string // the result of a change just made; "": none
	Holders    []operate.Consumer
	Bindings   []any // that lead to it
	Actor      operate.Actor
	Operations *operate.Operations
}

// peek is part of a queue's messages.
type peek struct {
	FromTail      bool
	Bodies        bool
	Offset        int
	Messages      []messageView
	Refused       bool // the user may not read the queue
	Before, After string
	Start         string // URL of the first page from this end
	Head, Tail    string // URLs of the ends; "": this is the end
	Toggle        string // URL with bodies, or without them
}

// messageView is a message as the pages show it.
type messageView struct {
	operate.Message
	Place int    // in the queue, counted from 1 at the chosen end
	Text  string // the body
	Hex   bool   // Text is a dump, since the body is binary
	Cut   bool   // Text is not the whole body
	// Change is the URL of the page to change its deadline; "": this user may not.
	Change string
}

func (d *Dashboard) queue(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	detail, err := d.Operations.Queue(r.Context(), v.Actor(), ui.Named(q))
	if err != nil {
		return nil, err
	}
	p := &queuePage{QueueDetail: detail, Now: d.state().NowMillis}
	p.Forecast = monitor.ByQueue(d.forecasts())[[2]string{detail.VHost, detail.Name}]
	p.Wrong = d.Incidents.Queues()[incident.QueueName{VHost: detail.VHost, Name: detail.Name}]
	p.History = overview.NewTrends(d.History, "/queue", q, detail.VHost, detail.Name)
	p.Operations, p.Actor, p.Changed = d.Operations, v.Actor(), changed[q.Get("changed")]
	if n, err := strconv.Atoi(q.Get("purged")); err == nil {
		p.Changed = ui.Plural(n, "message") + " deleted."
	}
	if p.Holders, err = operate.Holders(d.Operations.Access, v.Actor(), operate.QueueName{VHost: detail.VHost, Name: detail.Name}); err != nil {
		return nil, err
	}
	if v.Live { // the messages stay as they were when the page was opened
		return p, nil
	}
	if p.Bindings, err = topology.BindingsTo(r.Context(), d.Operations, v.Actor(), operate.QueueName{VHost: detail.VHost, Name: detail.Name}); err != nil {
		return nil, err
	}
	return p, p.Peek.look(r.Context(), d.Operations, v.Actor(), q)
}

// look gathers the messages that a query names by queue, end and offset.
func (p *peek) look(ctx context.Context, o *operate.Operations, by operate.Actor, q url.Values) error {
	p.FromTail, p.Bodies = q.Get("from") == "tail", q.Get("bodies") == "1"
	p.Offset, _ = strconv.Atoi(q.Get("offset"))
	p.Offset = min(max(p.Offset, 0), maxOffset)
	want := operate.PeekRequest{Queue: ui.Named(q), FromTail: p.FromTail, Offset: p.Offset, Count: peekRows + 1}
	if p.Bodies {
		want.BodyBytes = peekBody
	}
	list, err := o.Peek(ctx, by, want)
	if operate.Refused(err) {
		p.Refused = true
		return nil
	}
	if err != nil {
		return err
	}
	p.links(q, len(list) > peekRows)
	mayChange := o.May(by, messages.ChangeDeadline.Name, ui.Named(q))
	for i := range list[:min(len(list), peekRows)] {
		m := viewMessage(&list[i], p.Offset+i+1)
		if mayChange {
			m.Change = ui.DeadlineURL(q.Get("vhost"), q.Get("name"), m.QueueID, uint64(m.Seq))
		}
		p.Messages = append(p.Messages, m)
	}
	return nil
}

func (p *peek) links(q url.Values, more bool) {
	p.Start = ui.With("/queue", q, "offset", "")
	if p.FromTail {
		p.Head = ui.With("/queue", q, "from", "", "offset", "")
	} else {
		p.Tail = ui.With("/queue", q, "from", "tail", "offset", "")
	}
	p.Toggle = ui.With("/queue", q, "bodies", "1")
	if p.Bodies {
		p.Toggle = ui.With("/queue", q, "bodies", "")
	}
	if p.Offset > 0 {
		before := ""
		if p.Offset > peekRows {
			before = strconv.Itoa(p.Offset - peekRows)
		}
		p.Before = ui.With("/queue", q, "offset", before)
	}
	if more {
		p.After = ui.With("/queue", q, "offset", strconv.Itoa(p.Offset+peekRows))
	}
}

func viewMessage(m *operate.Message, place int) messageView {
	view := messageView{Message: *m, Place: place, Cut: len(m.Browsed.Message.Body) < m.BodyBytes}
	view.Text, view.Hex = ui.Body(m.Browsed.Message.Body, view.Cut)
	return view
}
