package letters

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
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
	Seq          uint64
	Draft        operate.Draft
	Form         string // of the body in its field: lf, crlf or base64
	Text         string
	Problem      string // why the draft was not sent; "": nothing was wrong
	TooLarge     bool
	Refused      bool // the user may not read the queue
	Allowed      bool // the user may replay from it
}

// reviewPage shows a changed message before it is sent.
type reviewPage struct {
	editPage
	Review deadletters.Review
}

func (d Pages) edit(r *http.Request, v ui.Visitor) (ui.View, error) {
	q := r.URL.Query()
	p := &editPage{VHost: q.Get("vhost"), Queue: q.Get("name")}
	var err error
	if p.Seq, err = strconv.ParseUint(q.Get("seq"), 10, 64); err != nil {
		return nil, operate.ErrMessageGone
	}
	p.Draft, err = d.Operations.DraftDeadLetter(r.Context(), v.Actor(), ui.Named(q), operate.Seq(p.Seq))
	p.Allowed = d.Operations.May(v.Actor(), operate.ResendDeadLetter, ui.Named(q))
	if operate.Refused(err) {
		p.Refused = true
		return p, nil
	}
	p.TooLarge = len(p.Draft.Body) > maxEdited
	p.Form, p.Text = fieldOfBody(p.Draft.Body)
	return p, err
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
	at, seq := operate.QueueName{VHost: p.VHost, Name: p.Queue}, operate.Seq(p.Seq)
	switch r.PostFormValue("do") {
	case "again":
		d.Site.Show(w, r, http.StatusOK, v, EditPath, &p)
	case "send":
		skipped, err := d.Operations.ResendDeadLetter(r.Context(), v.Actor(), at, seq, p.Draft)
		if err == nil && skipped != "" {
			err = fmt.Errorf("the message stays where it is, like those that %s", skippedWords(string(skipped)))
		}
		if err != nil {
			d.again(w, r, v, &p, err)
			return
		}
		http.Redirect(w, r, URL(p.VHost, p.Queue)+"&replayed=1", http.StatusSeeOther)
	default:
		review, err := d.Operations.ReviewDraft(r.Context(), v.Actor(), at, seq, p.Draft)
		if err != nil {
			d.again(w, r, v, &p, err)
			return
		}
		d.Site.Show(w, r, http.StatusOK, v, "/review", &reviewPage{p, review})
	}
}

// again shows the form with what was wrong, unless a corrected form would not help.
func (d Pages) again(w http.ResponseWriter, r *http.Request, v ui.Visitor, p *editPage, err error) {
	if operate.Refused(err) || operate.Gone(err) || p.Form == "" {
		d.Site.Refuse(w, r, err)
		return
	}
	p.Problem = err.Error()
	d.Site.Show(w, r, http.StatusBadRequest, v, EditPath, p)
}

// editedPage is the page with the form as it was filled in.
func editedPage(f url.Values) (p editPage, err error) {
	p = editPage{VHost: f.Get("vhost"), Queue: f.Get("name"), Allowed: true}
	p.Draft.Draft = deadletters.Draft{
		Exchange: f.Get("exchange"), RoutingKey: f.Get("routing_key"), Properties: []byte(f.Get("properties")), Unpacked: f.Get("unpacked") == "1",
	}
	if p.Seq, err = strconv.ParseUint(f.Get("seq"), 10, 64); err != nil {
		return p, operate.ErrMessageGone
	}
	if p.Draft.QueueID, err = strconv.ParseUint(f.Get("queue"), 10, 64); err != nil {
		return p, operate.ErrMessageGone
	}
	p.Form, p.Text = f.Get("form"), f.Get("body")
	if p.Draft.Body, err = bodyOf(p.Form, p.Text); err != nil && p.Form != coded {
		p.Form = ""
	}
	return p, err
}
