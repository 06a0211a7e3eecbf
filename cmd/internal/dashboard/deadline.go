package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// deadlinePage is the content of the page of a message's deadline.
type deadlinePage struct {
	VHost, Queue string
	QueueID      uint64 // the incarnation that the user saw
	Message      messageView
	Refused      bool // the user may not read the queue
	Changes      bool // the user may change the deadline
	Now          int64
}

// deadlinePlan is a requested change that the user has to confirm.
type deadlinePlan struct {
	deadlinePage
	Change messages.DeadlineChange
}

// changed has the outcomes of changes in words.
var changed = map[string]string{
	"rescheduled": "The message has its new deadline.",
	"expired":     "The message has expired.",
	"declared":    "Queue declared.",
	"held":        "A consumer holds the message. It stays with the consumer, and expires if it comes back.",
}

func (d *Dashboard) deadline(r *http.Request, v ui.Visitor) (ui.View, error) {
	p, err := d.lookAtDeadline(r.Context(), v, r.URL.Query())
	if p.Refused = operate.Refused(err); p.Refused {
		err = nil
	}
	return p.draw, err
}

// lookAtDeadline finds the message that a query or a form names.
func (d *Dashboard) lookAtDeadline(ctx context.Context, v ui.Visitor, q url.Values) (*deadlinePage, error) {
	p := &deadlinePage{VHost: q.Get("vhost"), Queue: q.Get("name"), Now: d.state().NowMillis}
	seq, err := ui.Seq(q)
	if err != nil {
		return p, err
	}
	m, err := d.Operations.Look(ctx, v.Actor, ui.Named(q), seq, peekBody)
	if p.QueueID = m.QueueID; err == nil && q.Has("queue") && q.Get("queue") != ui.Text(m.QueueID) {
		err = operate.ErrMessageGone // the number is another message's
	}
	if err == nil {
		p.Message, p.Changes = viewMessage(&m, 0), d.Operations.May(v.Actor, messages.ChangeDeadline.Name, ui.Named(q))
	}
	return p, err
}

// changeDeadline shows what a change would do, or does it if it is confirmed.
func (d *Dashboard) changeDeadline(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	f := r.PostForm
	seen, err := d.lookAtDeadline(r.Context(), v, f)
	p := &deadlinePlan{deadlinePage: *seen}
	if err == nil && !f.Has("queue") {
		err = operate.ErrMessageGone
	}
	if err == nil {
		p.Change, err = p.wanted(f)
	}
	if err == nil && f.Get("confirmed") != "1" {
		d.Show(w, r, http.StatusOK, v, "/deadline-plan", p.draw)
		return
	}
	var done messages.DeadlineChanged
	if err == nil {
		done, err = messages.ChangeDeadline.Do(r.Context(), d.Operations, v.Actor, p.Change)
	}
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, ui.With("/queue", url.Values{"vhost": {p.VHost}, "name": {p.Queue}}, "changed", done.Outcome), http.StatusSeeOther)
}

// wanted reads a form. A confirmed form has the instant that the user saw. An extension counts
// from the deadline that the user saw, or without one from the present deadline.
func (p *deadlinePage) wanted(f url.Values) (c messages.DeadlineChange, err error) {
	was := p.Message.DeadlineMillis
	c = messages.DeadlineChange{VHost: p.VHost, Queue: p.Queue, Seq: p.Message.Seq, Was: &was, QueueID: p.QueueID}
	if text := f.Get("was"); text != "" {
		if was, err = strconv.ParseInt(text, 10, 64); err != nil {
			return c, fmt.Errorf("was: %q is not an instant", text)
		}
	}
	switch f.Get("do") {
	case "extend", "shorten":
		by, err := deadline.ParseSpan(f.Get("by"))
		if err != nil || by < time.Millisecond {
			return c, fmt.Errorf("by: %w", cmp.Or(err, errors.New("choose a time of at least 1ms")))
		}
		if f.Get("do") == "shorten" {
			by = -by
		}
		c.At = max(was+int64(deadline.RoundUp(by)), 1)
	case "set":
		if c.At, err = deadline.ParseMillis(f.Get("at")); err != nil {
			return c, fmt.Errorf("at: %w", err)
		}
	case "to":
		c.At, err = strconv.ParseInt(f.Get("to"), 10, 64)
	case "cancel":
	case "fire":
		c.Fire, c.Drop = true, f.Get("drop") == "1"
	default:
		err = errors.New("choose what to do with the deadline")
	}
	c.Cancel = !c.Fire && c.At == 0
	return c, err
}

func (p *deadlinePage) draw(s *ui.Info) ui.Drawing {
	top := g.Group{ui.QueueCrumbs(p.VHost, p.Queue), h.H1(g.Text("A message's deadline"))}
	switch {
	case p.Refused:
		return ui.Drawing{Top: append(top, ui.Only(g.Text(ui.MayNotRead)))}
	case !p.Changes:
		return ui.Drawing{Top: append(top, p.message(), ui.Only(g.Text("This user may not change deadlines here.")))}
	}
	was := ui.Hidden("was", strconv.FormatInt(p.Message.DeadlineMillis, 10))
	at := time.UnixMilli(max(p.Message.DeadlineMillis, p.Now)).UTC().Format("2006-01-02T15:04:05")
	return ui.Drawing{Top: append(top, p.message(),
		g.If(p.Message.DeadlineMillis != 0, ui.Card("shift", "More time, or less", nil, p.form(s, was,
			ui.NewForm(nil, "by", "10m").Field("By", "by", "", h.Required(), g.Attr("size", "8")),
			ui.Button("Extend…", h.Name("do"), h.Value("extend")), ui.Button("Shorten…", h.Name("do"), h.Value("shorten")),
			ui.Button("No deadline…", h.Name("do"), h.Value("cancel"))))),
		ui.Card("set", "Another deadline", nil, p.form(s, was,
			ui.NewForm(nil, "at", at).Field("At (UTC)", "at", "", h.Type("datetime-local"), h.Step("1"), h.Required()),
			ui.Button("Set…", h.Name("do"), h.Value("set")))),
		ui.Card("fire", "Now", nil, p.form(s, was,
			ui.NewForm(nil).Check("Drop it, even if its queue dead-letters", "drop"),
			ui.Button("Expire it now…", h.Name("do"), h.Value("fire")))))}
}

func (p *deadlinePage) message() g.Node {
	m := &p.Message
	return h.Section(h.Class("card"), ui.Facts(
		ui.Fact("Deadline", ui.Due(m.DeadlineMillis, p.Now)),
		ui.Fact("Routing key", ui.Name(string(m.Browsed.Message.RoutingKey))),
		g.If(m.State == operate.Unacked, ui.Fact("State", ui.Class("warn", g.Text("held by a consumer")))),
		ui.Pairs(ui.Properties(&m.Properties)), ui.Pairs(ui.Fields(m.Properties.Headers)),
		ui.Fact("Size", g.Text(ui.Bytes(int64(m.BodyBytes))))),
		m.body("Body"))
}

// form is a form that changes the deadline of the message on the page.
func (p *deadlinePage) form(s *ui.Info, children ...g.Node) g.Node {
	return s.Change("/deadline", "filter",
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("seq", ui.Text(p.Message.Seq)), ui.Hidden("queue", ui.Text(p.QueueID)), g.Group(children))
}

func (p *deadlinePlan) draw(s *ui.Info) ui.Drawing {
	title, do := p.title()
	return ui.Drawing{Live: g.Group{
		ui.QueueCrumbs(p.VHost, p.Queue),
		h.H1(g.Text(title)),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Routing key", ui.Name(string(p.Message.Browsed.Message.RoutingKey))),
			ui.Pairs(ui.Properties(&p.Message.Properties)),
			ui.Fact("Deadline", ui.Due(*p.Change.Was, p.Now)),
			g.If(!p.Change.Fire, ui.Fact("Then", ui.Due(p.Change.At, p.Now))),
			g.If(p.Message.State == operate.Unacked, ui.Fact("State", ui.Class("warn", g.Text("held by a consumer")), g.Text(": it stays with the consumer, and expires if it comes back after the deadline"))))),
		p.form(s, ui.Hidden("confirmed", "1"), ui.Hidden("was", strconv.FormatInt(*p.Change.Was, 10)), p.fields(),
			h.Button(h.Class("primary"), h.AutoFocus(), g.Text(do)),
			ui.Link(ui.DeadlineURL(p.VHost, p.Queue, p.QueueID, p.Message.Seq), g.Text("Cancel"))),
	}}
}

// title is the question to the user and the text of the button.
func (p *deadlinePlan) title() (question, do string) {
	c := &p.Change
	switch {
	case c.Fire && c.Drop:
		return "Drop this message now?", "Drop it"
	case c.Fire:
		return "Expire this message now?", "Expire it now"
	case c.Cancel:
		return "Remove the deadline of this message?", "Remove the deadline"
	case c.At <= p.Now:
		return "This deadline has passed: the message expires at once. Continue?", "Expire it now"
	}
	return "Give this message the deadline " + ui.UTC(c.At) + "?", "Change the deadline"
}

// fields are the hidden fields of the change: what the user saw is what is done.
func (p *deadlinePlan) fields() g.Node {
	switch {
	case p.Change.Fire && p.Change.Drop:
		return g.Group{ui.Hidden("do", "fire"), ui.Hidden("drop", "1")}
	case p.Change.Fire:
		return ui.Hidden("do", "fire")
	case p.Change.Cancel:
		return ui.Hidden("do", "cancel")
	}
	return g.Group{ui.Hidden("do", "to"), ui.Hidden("to", strconv.FormatInt(p.Change.At, 10))}
}
