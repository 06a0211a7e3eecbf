package letters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

const (
	// bodyView is how much of a body its page shows, and readBody how much of a packed one is read for it, in bytes.
	bodyView = 256 << 10
	readBody = 4 << 20
	// maxUnpacked bounds what is unpacked for a download. A body that unpacks to more may have been made to do harm.
	maxUnpacked = 64 << 20
	// copies is how many bytes of memory each byte of a body takes until it is sent.
	copies = 2
)

// messagePage is the page of one message.
type messagePage struct {
	operate.Message
	VHost, Queue string
	Body         bodyText
	Raw          bool // as it was sent
	May          rights
	Now          int64
	Refused      bool
}

// bodyText is a body as its page shows it.
type bodyText struct {
	Text     string
	Hex      bool
	JSON     bool   // spread over many lines
	Cut      bool   // the body is longer
	Unpacked int    // bytes that were unpacked; 0: it is not packed, or shown as it was sent
	Problem  string // why it could not be unpacked
}

func (d Pages) message(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	p := &messagePage{VHost: q.Get("vhost"), Queue: q.Get("name"), Raw: q.Get("raw") == "1", Now: d.Operations.State().NowMillis}
	var err error
	p.Message, err = d.letter(r, v, readBody)
	if p.Refused = operate.Refused(err); err != nil && !p.Refused {
		return nil, err
	}
	p.Body = showBody(p.Properties.ContentEncoding, p.Browsed.Message.Body, p.BodyBytes, p.Raw)
	p.May = rightsOf(d.Operations, v.Actor, ui.Named(q))
	return p.draw, nil
}

// showBody makes a body readable: unpacked, and JSON on many lines. body is its beginning; whole is its size.
func showBody(encoding string, body []byte, whole int, raw bool) (s bodyText) {
	s.Cut = len(body) < whole
	if deadletters.IsPacked(encoding) && !raw {
		plain, more, err := deadletters.Unpack(encoding, body, bodyView)
		if len(plain) > 0 || err == nil {
			body, s.Unpacked = plain, len(plain)
			s.Cut = s.Cut || more
		}
		if err != nil && !s.Cut {
			s.Problem = err.Error()
		}
	}
	if len(body) > bodyView {
		body, s.Cut = body[:bodyView], true
	}
	if !s.Cut && !raw && json.Valid(body) {
		if pretty, ok := deadletters.Indent(body); ok {
			body, s.JSON = []byte(ui.Unescaped(string(pretty))), true
		}
	}
	s.Text, s.Hex = ui.Body(body, s.Cut)
	return s
}

// letter is the message that a query names, with that many bytes of its body (<0 all).
func (d Pages) letter(r *http.Request, v ui.Visitor, bytes int) (m operate.Message, err error) {
	seq, err := ui.Seq(r.URL.Query())
	if err == nil {
		m, err = d.Operations.Look(r.Context(), v.Actor, ui.Named(r.URL.Query()), seq, bytes)
	}
	return m, err
}

// body answers with the whole body, as it was sent or unpacked.
func (d Pages) body(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	m, err := d.letter(r, v, 0)
	if err != nil {
		d.Site.Refuse(w, r, err)
		return
	}
	encoding := m.Properties.ContentEncoding
	unpack := r.URL.Query().Get("unpacked") == "1" && deadletters.IsPacked(encoding)
	needs := int64(copies * m.BodyBytes)
	if unpack {
		needs += copies * maxUnpacked
	}
	release, err := d.Operations.Hold(v.Name, needs)
	defer release()
	if err == nil {
		m, err = d.letter(r, v, -1)
	}
	body := m.Browsed.Message.Body
	if err == nil && unpack {
		var more bool
		if body, more, err = deadletters.Unpack(encoding, body, maxUnpacked); err == nil && more {
			err = fmt.Errorf("the body unpacks to more than %s: download it as it was sent", ui.Bytes(maxUnpacked))
		}
	}
	if err != nil {
		d.Site.Refuse(w, r, err)
		return
	}
	takeTime(w)
	kind := "bin"
	if json.Valid(body) {
		kind = "json"
	}
	w.Header().Set("Content-Type", "application/octet-stream") // never something that a browser shows
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="message-%d.%s"`, m.Seq, kind))
	_, _ = w.Write(body) // it fails only if the client is gone
}

func (p *messagePage) draw(s *ui.Info) ui.Drawing {
	if p.Refused {
		return ui.Drawing{Top: g.Group{crumbs(p.VHost, p.Queue), ui.Only(g.Text(ui.MayNotRead))}}
	}
	title := "Message " + ui.Text(p.Seq)
	if id := p.Properties.MessageID; id != "" {
		title = ui.Visible(id)
	}
	return ui.Drawing{Top: g.Group{
		crumbs(p.VHost, p.Queue),
		h.H1(g.Text(title)),
		p.lastDeath(),
		p.actions(s),
		p.drawBody(),
		h.Div(h.Class("columns"), p.drawDeaths(), p.about()),
	}}
}

func (p *messagePage) actions(s *ui.Info) g.Node {
	does := func(path, class, text string) g.Node {
		return h.Button(h.FormAction(path), g.If(class != "", h.Class(class)), g.Text(text))
	}
	ready := p.State != operate.Unacked
	return s.Change(replayPath, "doing",
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("of", "selected"), ui.Hidden("pick", ui.Text(p.Seq)), ui.Hidden("shown", p.UpTo.String()),
		ui.Spaced(
			g.If(p.May.replay && ready, does(replayPath, "primary", "Replay…")),
			g.If(p.May.resend && ready, h.A(h.Class("button"), ui.Href(ui.MessageURL(EditPath, p.VHost, p.Queue, p.Seq)), g.Text("Change and replay…"))),
			g.If(p.May.purge && ready, does(purgePath, "danger asks", "Delete…")),
			g.If(p.May.replay && ready, ui.Faint("Replay first shows where the message would go, and what would become of it there.")),
			g.If(!ready, ui.Class("tag warn", g.Text("a consumer has it")))))
}

func (p *messagePage) drawBody() g.Node {
	b := &p.Body
	encoding := ui.Visible(p.Properties.ContentEncoding)
	packed := deadletters.IsPacked(p.Properties.ContentEncoding)
	size := ui.Bytes(int64(p.BodyBytes))
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
		g.If(b.Text != "", ui.Copy("message-body", "Copy the body")),
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
	if len(p.Deaths) == 0 {
		return nil
	}
	d := &p.Deaths[0]
	text := g.Group{h.B(g.Text(ui.Sentence(ui.Visible(d.Reason)))), g.Text(deadletters.ReasonWords(d.Reason) + " in "), ui.Link(ui.QueueURL(p.VHost, d.Queue), ui.Name(d.Queue))}
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
		text = append(text, g.Text(" at "+ui.Instant(d.Time)+", "+ui.Span(time.Since(d.Time))+" ago"))
	}
	return h.P(h.Class("summary"), text, g.Text("."))
}

// drawDeaths is a timeline of when, where and why the message died.
func (p *messagePage) drawDeaths() g.Node {
	if len(p.Deaths) == 0 {
		return ui.Card("deaths", "Deaths", nil, ui.Empty(g.Text("It never died: somebody published it here.")))
	}
	oldest := slices.Clone(p.Deaths)
	slices.SortStableFunc(oldest, func(a, b deadletters.Death) int { return a.Time.Compare(b.Time) })
	items := g.Map(oldest, func(d deadletters.Death) g.Node { return p.death(&d) })
	here := g.Group{h.B(g.Text("Here")), g.Text(" in "), ui.Name(p.Queue), g.Text(", by "), exchangeName(string(p.Browsed.Message.Exchange)), g.Text(" with the key "), ui.Name(string(p.Browsed.Message.RoutingKey))}
	if p.DeadlineMillis != 0 {
		here = append(here, g.Text(". It expires here "+ui.Until(p.DeadlineMillis, p.Now)+"."))
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
		g.If(!d.Time.IsZero(), h.Div(h.Class("faint"), h.Time(g.Text(ui.Instant(d.Time))), g.Text(" · "), g.Text(ui.Span(time.Since(d.Time))+" ago"))),
		h.Div(h.B(ui.Name(d.Reason)), ui.Faint(deadletters.ReasonWords(d.Reason)), g.Text(" in "), ui.Link(ui.QueueURL(p.VHost, d.Queue), ui.Name(d.Queue)), g.Text(often)),
		h.Div(h.Class("faint"), g.Text("published to "), exchangeName(d.Exchange), g.If(len(keys) > 0, g.Text(" with "+strings.Join(keys, ", "))),
			g.If(d.Expiration != "", g.Text(", TTL "+lifetime(d.Expiration)))))
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
	if l.State == operate.Unacked {
		state = "unacked"
	}
	headers := slices.DeleteFunc(ui.Fields(l.Properties.Headers), func(h ui.Pair) bool { return h.Name == "x-death" && len(l.Deaths) > 0 })
	return ui.Card("about", "Properties and headers", nil, h.Dl(h.Class("parts"),
		ui.Fact("number", g.Text(ui.Text(p.Seq)+", "+state)),
		ui.Pairs(ui.Properties(&l.Properties)), ui.Pairs(headers),
		g.If(l.Replays > 0, ui.Fact("replayed", g.Text(ui.Number(l.Replays)+"×")))))
}
