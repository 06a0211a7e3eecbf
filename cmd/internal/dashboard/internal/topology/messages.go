package topology

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// publishForm is the form that publishes a message.
type publishForm struct {
	Form   *ui.Form
	VHosts []string
	Done   string // what became of the last one
	Lost   bool   // no queue took it
}

func (p Pages) makePublishForm(v ui.Visitor, values url.Values) *publishForm {
	f := ui.NewForm(values, "vhost", "/", "content_type", "application/json")
	if len(values["token"]) == 0 { // not sent yet
		f.Values.Set("persistent", "1")
	}
	return &publishForm{Form: f, VHosts: p.Operations.VHostNames(v.Actor)}
}

func (p Pages) publishForm(r *http.Request, v ui.Visitor) (ui.View, error) {
	q, a := r.URL.Query(), v.Actor
	may := operate.MayChange(p.Operations.Access, a, q.Get("vhost"))
	if q.Has("exchange") || q.Has("key") {
		may = operate.MayExchange(p.Operations.Access, a, access.Write, cmp.Or(q.Get("vhost"), "/"), q.Get("exchange"))
	}
	if !may {
		return nil, operate.ErrNotYours
	}
	return p.makePublishForm(v, q).draw, nil
}

// publish publishes a message, and shows the form again as it was, for the next message.
func (p Pages) publish(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	form := p.makePublishForm(v, r.PostForm)
	f := form.Form
	m := operate.Publication{
		Exchange: operate.ExchangeName{VHost: f.Get("vhost"), Name: f.Get("exchange")}, RoutingKey: f.Get("key"), Properties: form.properties(), Body: []byte(strings.ReplaceAll(f.Get("body"), "\r\n", "\n")),
	}
	var err error
	routed := false
	if f.OK() {
		routed, err = p.Operations.Publish(r.Context(), v.Actor, &m)
	}
	if err != nil || !f.OK() {
		f.Again(p.Site, w, r, v, publish, err, form.draw)
		return
	}
	form.Lost, form.Done = !routed, "Published, and a queue took it."
	p.Site.Show(w, r, http.StatusOK, v, publish, form.draw)
}

// properties reads the message's properties. An empty field is a property that is not set.
func (p *publishForm) properties() (m operate.Properties) {
	f := p.Form
	m.Headers = f.Table("headers")
	for name, to := range map[string]*string{
		"content_type": &m.ContentType, "content_encoding": &m.ContentEncoding, "correlation_id": &m.CorrelationID, "reply_to": &m.ReplyTo,
		"message_id": &m.MessageID, "type": &m.Type, "app_id": &m.AppID,
	} {
		*to = f.Get(name)
	}
	if ms, given := f.Value("expiration", operate.Span).(int64); given {
		if ms < 0 {
			f.Wrong("expiration", "A time to live is 0 or more.")
		}
		m.Expiration = strconv.FormatInt(ms, 10)
	}
	if at, given := f.Value("deadline", operate.Instant).(int64); given {
		m.Headers["x-expires-at"] = at
	}
	if n, given := f.Value("priority", operate.Number).(int64); given {
		if n < 0 || n > 255 {
			f.Wrong("priority", "A priority is from 0 to 255.")
		}
		m.Priority = uint8(n)
	}
	if f.Get("persistent") != "" {
		m.DeliveryMode = 2
	}
	return m
}

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

func (p *publishForm) draw(s *ui.Info) ui.Drawing {
	f := p.Form
	became := ui.Done(p.Done)
	if p.Lost {
		became = ui.Problem("Published, and no queue took it: nothing is bound to the exchange for this key. The message is lost.")
	}
	back := ui.Link(ui.At("/exchange", "vhost", f.Get("vhost"), "name", f.Get("exchange")), g.Text("Back to the exchange"))
	if f.Get("exchange") == "" && f.Get("key") != "" {
		back = ui.Link(ui.QueueURL(f.Get("vhost"), f.Get("key")), g.Text("To the queue"))
	}
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(exchangesTab, g.Text("Exchanges"))), h.H1(g.Text("Publish a message")), became,
		h.Section(h.Class("card"), s.Sheet(publish, f, g.Group{
			f.Field("Exchange", "exchange", "Empty: the default exchange, which routes to the queue named by the key."),
			f.Choose("Virtual host", "vhost", "", ui.Or("", p.VHosts)...),
			f.Field("Routing key", "key", "", h.MaxLength("255")),
			f.Field("Expires after", "expiration", "In ms, or as 90s, 10m or 24h. Empty: the queue's time to live.", h.Placeholder("90s")),
			f.Area("Body", "body", "", 8),
			f.Field("Content type", "content_type", ""),
			h.FieldSet(h.Legend(g.Text("The message")), f.Check("survives a restart", "persistent")),
			h.Details(g.If(!f.OK(), g.Attr("open")), h.Summary(g.Text("Deadline at an instant, headers and other properties")), h.Div(h.Class("sheet"),
				f.Field("Deadline (UTC)", "deadline", "Instead of a time to live. It sets the header x-expires-at.", h.Type("datetime-local"), h.Step("1")),
				f.Field("Priority", "priority", "", number),
				f.Area("Headers", "headers", `A JSON object, for example {"tenant": "acme"}.`, 3),
				f.Field("Message id", "message_id", ""), f.Field("Correlation id", "correlation_id", ""),
				f.Field("Type", "type", ""), f.Field("Reply to", "reply_to", ""), f.Field("App id", "app_id", ""), f.Field("Content encoding", "content_encoding", ""))),
		}, ui.Button("Publish", h.Class("primary")), back)),
	}}
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
