package letters

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/printable"
)

// maxEdited bounds a body that can be edited; MaxEditForm bounds the form with the body.
const maxEdited = 256 << 10

// How a body is encoded in its field. Browsers end each line that they send with CR LF, whatever it
// ended with before.
const (
	linesLF   = "lf"
	linesCRLF = "crlf"
	coded     = "base64"
)

// editPage is the content of the page to change a dead letter.
type editPage struct {
	VHost, Queue string
	messages.LetterDraft
	Form     string // of the body in its field: lf, crlf or base64
	Text     string
	Problem  string // why the draft was not sent; "": nothing was wrong
	TooLarge bool
	Refused  bool // the user may not read the queue
	Allowed  bool // the user may replay from it
}

// reviewPage shows a changed message before it is sent.
type reviewPage struct {
	editPage
	Review deadletters.Review
}

func (d Pages) edit(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	p := &editPage{VHost: q.Get("vhost"), Queue: q.Get("name")}
	seq, err := ui.Seq(q)
	if err == nil {
		asked := messages.ChangedLetter{VHost: p.VHost, Queue: p.Queue, LetterDraft: messages.LetterDraft{Seq: seq}}
		p.LetterDraft, err = messages.DraftDeadLetter.Do(r.Context(), d.Operations, v.Actor, asked)
	}
	p.Allowed = d.Operations.May(v.Actor, messages.ResendDeadLetter.Name, ui.Named(q))
	if p.Refused = operate.Refused(err); p.Refused {
		err = nil
	}
	p.TooLarge = len(p.Body) > maxEdited
	p.Form, p.Text = fieldOfBody(p.Body)
	return p.draw, err
}

// fieldOfBody encodes a body so that it survives a text field.
func fieldOfBody(body []byte) (form, text string) {
	text = string(body)
	switch {
	case !ui.Readable(body):
	case !strings.Contains(text, "\r"):
		return linesLF, text
	case strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n") == text:
		return linesCRLF, text
	}
	return coded, base64.StdEncoding.EncodeToString(body)
}

// bodyOf reverses fieldOfBody for what a browser sent.
func bodyOf(form, text string) ([]byte, error) {
	switch form {
	case linesLF:
		return []byte(strings.ReplaceAll(text, "\r\n", "\n")), nil
	case linesCRLF:
		return []byte(text), nil
	case coded:
		body, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, errors.New("the body is not valid base64")
		}
		return body, nil
	}
	return nil, fmt.Errorf("form: %q is not lf, crlf or base64", form)
}

// change shows the changed message and, once that is confirmed, replays it. After a mistake the form is shown as it was filled in.
func (d Pages) change(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p, err := editedPage(r.PostForm)
	if err != nil {
		d.again(w, r, v, &p, err)
		return
	}
	does := r.PostFormValue("do")
	if does == "again" {
		d.Site.Show(w, r, http.StatusOK, v, EditPath, p.draw)
		return
	}
	request := messages.ChangedLetter{VHost: p.VHost, Queue: p.Queue, LetterDraft: p.LetterDraft, DryRun: does != "send"}
	done, err := messages.ResendDeadLetter.Do(r.Context(), d.Operations, v.Actor, request)
	if stays, is := errors.AsType[*deadletters.Stays](err); is {
		err = fmt.Errorf("the message stays where it is, like those that %s", skippedWords(string(stays.Why)))
	}
	switch {
	case err != nil:
		d.again(w, r, v, &p, err)
	case request.DryRun:
		d.Site.Show(w, r, http.StatusOK, v, "/review", (&reviewPage{p, *done}).draw)
	default:
		http.Redirect(w, r, URL(p.VHost, p.Queue, "")+"&replayed=1", http.StatusSeeOther)
	}
}

// again shows the form with what was wrong, unless a corrected form would not help.
func (d Pages) again(w http.ResponseWriter, r *http.Request, v ui.Visitor, p *editPage, err error) {
	if operate.Refused(err) || operate.Gone(err) || p.Form == "" {
		d.Site.Refuse(w, r, err)
		return
	}
	p.Problem = err.Error()
	d.Site.Show(w, r, http.StatusBadRequest, v, EditPath, p.draw)
}

// editedPage is the page with the form as it was filled in.
func editedPage(f url.Values) (p editPage, err error) {
	p = editPage{VHost: f.Get("vhost"), Queue: f.Get("name"), Allowed: true}
	p.Draft = deadletters.Draft{
		Exchange: f.Get("exchange"), RoutingKey: f.Get("routing_key"), Properties: []byte(f.Get("properties")), Unpacked: f.Get("unpacked") == "1",
	}
	if p.Seq, err = ui.Seq(f); err != nil {
		return p, err
	}
	if p.QueueID, err = strconv.ParseUint(f.Get("queue"), 10, 64); err != nil {
		return p, operate.ErrMessageGone
	}
	p.Form, p.Text = f.Get("form"), f.Get("body")
	if p.Body, err = bodyOf(p.Form, p.Text); err != nil && p.Form != coded {
		p.Form = ""
	}
	return p, err
}

func (p *editPage) draw(s *ui.Info) ui.Drawing {
	top := g.Group{crumbs(p.VHost, p.Queue), h.H1(g.Text("Change a dead letter and replay it"))}
	switch {
	case p.Refused:
		return ui.Drawing{Top: append(top, ui.Only(g.Text(ui.MayNotRead)))}
	case !p.Allowed:
		return ui.Drawing{Top: append(top, ui.Only(g.Text("This user may not replay dead letters.")))}
	case p.TooLarge:
		return ui.Drawing{Top: append(top, ui.Only(g.Text("The body is larger than "+ui.Bytes(maxEdited)+": download the message, change the file and import it.")))}
	}
	return ui.Drawing{Top: append(top, p.form(s))}
}

func (p *editPage) form(s *ui.Info) g.Node {
	body := "Body"
	switch {
	case p.Form == coded:
		body = "Body, in base64 because it is not text"
	case p.Unpacked:
		body = "Body, unpacked: it is packed again according to content_encoding"
	}
	f := ui.NewForm(nil, "exchange", p.Exchange, "routing_key", p.RoutingKey, "properties", string(p.Properties), "body", p.Text)
	if p.Problem != "" {
		f.Wrong("", p.Problem)
	}
	return h.Section(h.Class("card"), s.Sheet(EditPath, f, g.Group{
		p.names(),
		f.Field("Exchange", "exchange", "", h.MaxLength("255"), h.Placeholder("the default exchange")),
		f.Field("Routing key", "routing_key", "", h.MaxLength("255")),
		f.Area("Properties and headers, as JSON", "properties", "", 10),
		f.Area(body, "body", "", 10),
		h.P(h.Class("faint whole"), g.Text("You see what has changed before anything is sent. The message leaves this queue only when another queue has it; its death history begins again there.")),
	}, ui.Button("Review the change", h.Class("primary")), ui.Link(URL(p.VHost, p.Queue, ""), g.Text("Cancel"))))
}

// names are the hidden fields that identify the message.
func (p *editPage) names() g.Node {
	unpacked := ""
	if p.Unpacked {
		unpacked = "1"
	}
	return g.Group{
		ui.HiddenIf("unpacked", unpacked),
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("seq", ui.Text(p.Seq)),
		ui.Hidden("queue", ui.Text(p.QueueID)), ui.Hidden("form", p.Form),
	}
}

func (p *reviewPage) draw(s *ui.Info) ui.Drawing {
	r := &p.Review
	does := func(value, class, text string) g.Node {
		return h.Button(h.Name("do"), h.Value(value), g.If(class != "", h.Class(class)), g.Text(text))
	}
	send := does("send", "primary", "Replay the changed message")
	switch {
	case r.Skipped != "":
		send = nil
	case r.NotJSON != "":
		send = does("send", "danger", "Replay although it is not JSON")
	case r.Diff == "":
		send = does("send", "primary", "Replay unchanged")
	}
	diff := ui.Card("diff", "What has changed", nil, g.If(r.Diff == "", ui.Empty(g.Text("Nothing."))), g.If(r.Diff != "", drawDiff(r.Diff)))
	return ui.Drawing{Live: g.Group{
		crumbs(p.VHost, p.Queue),
		h.H1(g.Text("Replay the changed message?")),
		g.If(r.NotJSON != "", ui.Problem("The body is no longer valid JSON: "+r.NotJSON+".")),
		g.If(r.Skipped != "", ui.Problem("The message would stay where it is, like those that "+skippedWords(string(r.Skipped))+".")),
		s.Change(EditPath, "doing", p.names(),
			ui.Hidden("exchange", p.Exchange), ui.Hidden("routing_key", p.RoutingKey), ui.Hidden("properties", string(p.Properties)), ui.Hidden("body", p.Text),
			send, does("again", "", "Back to editing"), ui.Link(URL(p.VHost, p.Queue, ""), g.Text("Cancel"))),
		diff,
		ui.Card("where", "Where it goes", nil, drawTargets(p.VHost, r.Targets)),
	}}
}

// drawDiff draws the lines of a unified diff.
func drawDiff(diff string) g.Node {
	var lines g.Group
	for i, line := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		if i < 2 || line == `\ No newline at end of file` { // the names of the files
			continue
		}
		text := g.Text(printable.Text(line, "\t") + "\n")
		switch line[:min(len(line), 1)] {
		case "+":
			lines = append(lines, h.Ins(text))
		case "-":
			lines = append(lines, h.Del(text))
		case "@":
			lines = append(lines, ui.Class("faint", text))
		default:
			lines = append(lines, text)
		}
	}
	return h.Pre(h.Class("diff"), h.TabIndex("0"), h.Aria("label", "Difference"), lines)
}
