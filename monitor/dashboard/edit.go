package dashboard

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
	"curfew/monitor/dashboard/internal/content"
	"curfew/monitor/dashboard/internal/ui"
)

const (
	// maxEdited bounds a body that can be edited, and maxEditForm the form that has it.
	maxEdited   = 256 << 10
	maxEditForm = 2 << 20
	editPath    = "/dead-letter/edit"
)

// How a body is encoded in its field. Browsers end each line that they send with CR LF, whatever it
// was before.
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
	TooLarge     bool
	Refused      bool // the user may not read the queue
	Allowed      bool // the user may replay from it
}

func editURL(vhost, queue string, seq uint64) string {
	return editPath + "?" + url.Values{"vhost": {vhost}, "name": {queue}, "seq": {strconv.FormatUint(seq, 10)}}.Encode()
}

func (d *Dashboard) edit(r *http.Request, v ui.Visitor) (ui.View, error) {
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
	p.Form, p.Text = fieldOf(p.Draft.Body)
	return p, err
}

// fieldOf encodes a body so that it survives a text field.
func fieldOf(body []byte) (form, text string) {
	text = string(body)
	switch {
	case !content.Readable(body):
	case !strings.Contains(text, "\r"):
		return linesLF, text
	case strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n") == text:
		return linesCRLF, text
	}
	return coded, base64.StdEncoding.EncodeToString(body)
}

// bodyOf reverses fieldOf for what a browser sent.
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

// resend replays a changed dead letter.
func (d *Dashboard) resend(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	f := r.PostForm
	seq, err := strconv.ParseUint(f.Get("seq"), 10, 64)
	draft := operate.Draft{Draft: deadletters.Draft{Exchange: f.Get("exchange"), RoutingKey: f.Get("routing_key"), Properties: []byte(f.Get("properties"))}}
	if err == nil {
		draft.QueueID, err = strconv.ParseUint(f.Get("queue"), 10, 64)
	}
	if err == nil {
		draft.Body, err = bodyOf(f.Get("form"), f.Get("body"))
	}
	skipped := deadletters.SkipReason("")
	if err == nil {
		skipped, err = d.Operations.ResendDeadLetter(r.Context(), v.Actor(), ui.Named(f), operate.Seq(seq), draft)
	}
	if err == nil && skipped != "" {
		err = fmt.Errorf("the message stays where it is, like those that %s", leftWords(string(skipped)))
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, ui.With("/dead-letter", url.Values{"vhost": f["vhost"], "name": f["name"]}, "replayed", "1"), http.StatusSeeOther)
}
