package topology

import (
	"net/http"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// getPage is the page that gets a message.
type getPage struct {
	operate.QueueDetail
	Form     *ui.Form
	Asked    bool   // a message was asked for
	Got      g.Node // nil: the queue is empty
	Requeued bool
}

func (p Pages) getPage(r *http.Request, v ui.Visitor, values url.Values) (*getPage, error) {
	q, err := p.queue(r, v, values, access.Read)
	return &getPage{QueueDetail: q, Form: ui.NewForm(values, "then", "requeue")}, err
}

// maxBody bounds how much of a body a page shows, in bytes.
const maxBody = 64 << 10

// after is what becomes of a message once the page has it.
var after = map[string]operate.GetRequest{
	"requeue": {After: broker.PutBack}, "reject": {After: broker.Reject}, "ack": {NoAck: true},
}

func (p Pages) get(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	page, err := p.getPage(r, v, r.PostForm)
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	request, known := after[page.Form.Get("then")]
	if !known {
		page.Form.Wrong("then", "Choose what becomes of the message.")
		page.Form.Again(p.Site, w, r, v, getMessage, nil, page.draw)
		return
	}
	request.Queue, request.Count = ui.Named(r.PostForm), 1
	err = p.Operations.Get(r.Context(), v.Actor, request, func(d *broker.Delivery) { page.Got = drawGot(d) })
	if err != nil {
		page.Form.Again(p.Site, w, r, v, getMessage, err, page.draw)
		return
	}
	page.Asked, page.Requeued = true, request.After == broker.PutBack && !request.NoAck
	p.Site.Show(w, r, http.StatusOK, v, getMessage, page.draw)
}

func (p *getPage) draw(s *ui.Info) ui.Drawing {
	f := p.Form
	return ui.Drawing{Live: g.Group{
		ui.QueueCrumbs(p.VHost, p.Name), h.H1(g.Text("Get a message")),
		p.result(),
		h.Section(h.Class("card"),
			ui.Empty(g.Text("This takes the first ready message as a consumer would, before the page with it is sent: if the connection breaks in between, a message removed for good is lost unseen. To look without taking a message, "),
				ui.Link(ui.QueueURL(p.VHost, p.Name), g.Text("use the queue's page")), g.Text(".")),
			s.Sheet(getMessage, f, g.Group{
				ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Name),
				f.Choose("Then", "then", "", "requeue", "put it back, marked as redelivered", "reject", "reject it: it is dead-lettered, or dropped", "ack", "remove it for good"),
			}, ui.Button("Get it", h.Class("danger")), ui.Link(ui.QueueURL(p.VHost, p.Name), g.Text("Cancel")))),
	}}
}

func (p *getPage) result() g.Node {
	if !p.Asked {
		return nil
	}
	if p.Got == nil {
		return ui.Only(g.Text("No message is ready."))
	}
	became := "It left the queue."
	if p.Requeued {
		became = "It is back in the queue."
	}
	return g.Group{ui.Done(became), p.Got}
}

// drawGot shows a message as a consumer would have received it. It keeps nothing of it.
func drawGot(d *broker.Delivery) g.Node {
	m, facts := &d.Message, g.Group{}
	if properties, err := broker.ParseStored(m.Properties); err == nil {
		facts = g.Group{ui.Pairs(ui.Properties(&properties)), ui.Pairs(ui.Fields(properties.Headers))}
	}
	cut, how := len(m.Body) > maxBody, "pre"
	text, dumped := ui.Body(m.Body[:min(len(m.Body), maxBody)], cut)
	if dumped {
		how = "hex"
	}
	return ui.Card("got", "The message", nil, ui.Facts(
		ui.Fact("Exchange", ui.NameOr(string(m.Exchange), g.Text("(default exchange)"))), ui.Fact("Routing key", ui.Name(string(m.RoutingKey))),
		g.If(d.Redelivered, ui.Fact("Redelivered", g.Text("yes"))), facts,
		ui.Fact("Size", g.Text(ui.Bytes(int64(len(m.Body))))), ui.Fact("Behind it", g.Text(ui.Plural(d.Ready, "message")))),
		h.Pre(h.Class(how), g.Text(text)), g.If(cut, ui.Faint("Only the first 64 KiB are shown.")))
}
