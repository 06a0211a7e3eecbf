package letters

import (
	"fmt"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/cmd/internal/dashboard/internal/ui"
)

func (p *messagePage) Draw(s *ui.Info) ui.Drawing {
	if p.Refused {
		return ui.Drawing{Top: g.Group{crumbs(p.VHost, p.Queue), ui.Only(g.Text(ui.MayNotRead))}}
	}
	title := "Message " + strconv.FormatUint(p.Seq, 10)
	if id := p.Letter.Properties.MessageID; id != "" {
		title = ui.Visible(id)
	}
	return ui.Drawing{Top: g.Group{
		crumbs(p.VHost, p.Queue),
		h.H1(g.Text(title)),
		p.lastDeath(),
		p.actions(s),
		p.body(),
		h.Div(h.Class("columns"), p.deaths(), p.about()),
	}}
}

func (p *messagePage) actions(s *ui.Info) g.Node {
	number := strconv.FormatUint(p.Seq, 10)
	does := func(path, class, text string) g.Node {
		return h.Button(h.FormAction(path), g.If(class != "", h.Class(class)), g.Text(text))
	}
	ready := !p.Letter.Unacked()
	return s.Change(replayPath, "doing",
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("of", "selected"), ui.Hidden("pick", number), ui.Hidden("shown", p.Position.String()),
		ui.Spaced(
			g.If(p.May.replay && ready, does(replayPath, "primary", "Replay…")),
			g.If(p.May.resend && ready, h.A(h.Class("button"), ui.Href(ui.MessageURL(EditPath, p.VHost, p.Queue, p.Seq)), g.Text("Change and replay…"))),
			g.If(p.May.purge && ready, does(purgePath, "danger asks", "Delete…")),
			g.If(p.May.replay && ready, ui.Faint("Replay first shows where the message would go, and what would become of it there.")),
			g.If(!ready, ui.Class("tag warn", g.Text("a consumer has it")))))
}

func (p *messagePage) body() g.Node {
	b, l := &p.Body, &p.Letter
	encoding := ui.Visible(l.Properties.ContentEncoding)
	packed := deadletters.IsPacked(l.Properties.ContentEncoding)
	size := ui.Bytes(int64(l.BodyBytes))
	switch {
	case b.Unpacked > 0 && b.Cut:
		size += " of " + encoding + ", unpacked"
	case b.Unpacked > 0:
		size += " of " + encoding + ", " + ui.Bytes(int64(b.Unpacked)) + " unpacked"
	case packed:
		size += " of " + encoding
	}
	here := ui.MessageURL(messagePath, p.VHost, p.Queue, p.Seq)
	views := []ui.Choice{{Name: "Readable"}, {Name: "As sent", URL: here + "&raw=1"}}
	if p.Raw {
		views = []ui.Choice{{Name: "Readable", URL: here}, {Name: "As sent"}}
	}
	file := ui.MessageURL(bodyPath, p.VHost, p.Queue, p.Seq)
	aside := h.Span(h.Class("bodytools"), ui.Faint(size), g.Text(" "), g.If(packed || b.JSON || p.Raw, ui.Choices("View", views)), g.Text(" "),
		g.If(b.Text != "", h.Button(h.Type("button"), h.Class("quiet"), h.Data("copy", "message-body"), g.Attr("hidden"), g.Text("Copy"))),
		h.A(ui.Href(file), h.Download(""), g.Text("Download")), g.If(packed, g.Group{g.Text(" "), h.A(ui.Href(file+"&unpacked=1"), h.Download(""), g.Text("unpacked"))}))
	how := "text"
	if b.Hex {
		how = "hex"
	}
	return ui.Card("body", "Body", aside,
		g.If(b.Problem != "", h.P(h.Class("problem"), ui.Name(b.Problem))),
		ui.Either(b.Text == "", ui.Empty(g.Text("The message has no body.")),
			h.Pre(h.Class(how+" whole"), h.ID("message-body"), h.TabIndex("0"), h.Aria("label", "Body"), g.Text(b.Text))),
		g.If(b.Cut, h.P(h.Class("faint"), g.Text("This is the beginning. Download the message for the rest."))))
}

// lastDeath explains in one sentence why the message is here.
func (p *messagePage) lastDeath() g.Node {
	if len(p.Letter.Deaths) == 0 {
		return nil
	}
	d := &p.Letter.Deaths[0]
	text := g.Group{h.B(g.Text(ui.Sentence(ui.Visible(d.Reason)))), g.Text(reasonWords(d.Reason) + " in "), ui.Link(ui.QueueURL(p.VHost, d.Queue), ui.Name(d.Queue))}
	if d.Reason == "expired" && d.Expiration != "" {
		text = append(text, g.Text(" after "+lifetime(d.Expiration)))
	}
	switch {
	case d.Count > 1:
		text = append(text, g.Text(" "+ui.Number(d.Count)+" times"))
		if !d.Time.IsZero() {
			text = append(text, g.Text(", for the first time at "+ui.Instant(d.Time)))
		}
	case !d.Time.IsZero():
		text = append(text, g.Text(" at "+ui.Instant(d.Time)+", "+ui.Since(d.Time)+" ago"))
	}
	return h.P(h.Class("summary"), text, g.Text("."))
}

// deaths is a timeline of when, where and why the message died.
func (p *messagePage) deaths() g.Node {
	if len(p.Deaths) == 0 {
		return ui.Card("deaths", "Deaths", nil, ui.Empty(g.Text("It never died: somebody published it here.")))
	}
	items := g.Map(p.Deaths, func(d deadletters.Death) g.Node { return p.death(&d) })
	here := g.Group{h.B(g.Text("Here")), g.Text(" in "), ui.Name(p.Queue), g.Text(", by "), exchangeName(p.Letter.Exchange), g.Text(" with the key "), ui.Name(p.Letter.RoutingKey)}
	if p.Letter.Deadline != 0 {
		here = append(here, g.Text(". It expires here "+ui.Until(p.Letter.DeadlineMillis, p.Now)+"."))
	}
	return ui.Card("deaths", "Deaths", ui.Faint("oldest first"), h.Ol(h.Class("deaths"), items, h.Li(here)))
}

func exchangeName(exchange string) g.Node {
	if exchange == "" {
		return g.Text("the default exchange")
	}
	return ui.Name(exchange)
}

func (p *messagePage) death(d *deadletters.Death) g.Node {
	keys := make([]string, len(d.Keys))
	for i := range d.Keys {
		keys[i] = ui.Visible(d.Keys[i])
	}
	often := ""
	if d.Count > 1 {
		often = fmt.Sprintf(", %s times since", ui.Number(d.Count))
	}
	return h.Li(
		g.If(!d.Time.IsZero(), h.Div(h.Class("faint"), h.Time(g.Text(ui.Instant(d.Time))), g.Text(" · "), g.Text(ui.Since(d.Time)+" ago"))),
		h.Div(h.B(ui.Name(d.Reason)), ui.Faint(reasonWords(d.Reason)), g.Text(" in "), ui.Link(ui.QueueURL(p.VHost, d.Queue), ui.Name(d.Queue)), g.Text(often)),
		h.Div(h.Class("faint"), g.Text("published to "), exchangeName(d.Exchange), g.If(len(keys) > 0, g.Text(" with "+strings.Join(keys, ", "))),
			g.If(d.Expiration != "", g.Text(", TTL "+lifetime(d.Expiration)))))
}

// reasons explain the reasons that are not obvious.
var reasons = map[string]string{"maxlen": "the queue was full", "delivery_limit": "delivered too often", "rejected": "by a consumer"}

func reasonWords(reason string) string {
	if words := reasons[reason]; words != "" {
		return " (" + words + ")"
	}
	return ""
}

// lifetime is an expiration property for people.
func lifetime(expiration string) string {
	if ms, err := strconv.ParseInt(expiration, 10, 64); err == nil && ms >= 0 && ms < 1<<40 {
		return ui.Millis(ms)
	}
	return ui.Visible(expiration) + " ms"
}

func (p *messagePage) about() g.Node {
	l := &p.Letter
	state := "ready"
	if l.Unacked() {
		state = "unacked"
	}
	return ui.Card("about", "Properties and headers", nil, h.Dl(h.Class("parts"),
		ui.Fact("number", g.Text(strconv.FormatUint(p.Seq, 10)+", "+state)),
		ui.Pairs(p.Properties), ui.Pairs(p.Headers),
		g.If(l.Replays > 0, ui.Fact("replayed", g.Text(ui.Number(l.Replays)+"×")))))
}
