package dashboard

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// Draft is a dead letter as it would be replayed, for a person to change.
type Draft struct {
	Queue                uint64 // the incarnation of the queue that it stands in
	Exchange, RoutingKey string
	Properties           string // JSON, as Export writes them
	Body                 []byte
}

const (
	// maxEdited bounds a body that is edited, and maxEditForm the form with it.
	maxEdited   = 256 << 10
	maxEditForm = 2 << 20
	editPath    = "/dead-letter/edit"
)

// How a body stands in its field: browsers end each line of what they send with CR LF,
// whatever it was.
const (
	linesLF   = "lf"
	linesCRLF = "crlf"
	coded     = "base64"
)

// editPage is what the page shows where one dead letter is changed.
type editPage struct {
	VHost, Queue string
	Seq          uint64
	Draft        Draft
	Form         string // of the body in its field: lf, crlf or base64
	Text         string
	TooLarge     bool
	Refused      bool // the user may not read the queue
}

func editURL(vhost, queue string, seq uint64) string {
	return editPath + "?" + url.Values{"vhost": {vhost}, "name": {queue}, "seq": {strconv.FormatUint(seq, 10)}}.Encode()
}

func (d *Dashboard) edit(r *http.Request, v visitor) (view, error) {
	q := r.URL.Query()
	p := &editPage{VHost: q.Get("vhost"), Queue: q.Get("name")}
	var err error
	if p.Seq, err = strconv.ParseUint(q.Get("seq"), 10, 64); err != nil {
		return nil, ErrGone
	}
	p.Draft, err = d.DeadLetters.Draft(v.User, p.VHost, p.Queue, p.Seq)
	if errors.Is(err, ErrForbidden) {
		p.Refused = true
		return p, nil
	}
	p.TooLarge = len(p.Draft.Body) > maxEdited
	p.Form, p.Text = fieldOf(p.Draft.Body)
	return p, err
}

// fieldOf is a body as a field may have it without changing it.
func fieldOf(body []byte) (form, text string) {
	text = string(body)
	switch {
	case !readable(body):
	case !strings.Contains(text, "\r"):
		return linesLF, text
	case strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n") == text:
		return linesCRLF, text
	}
	return coded, base64.StdEncoding.EncodeToString(body)
}

// bodyOf is fieldOf's opposite, of what a browser sent.
func bodyOf(form, text string) ([]byte, error) {
	switch form {
	case linesLF:
		return []byte(strings.ReplaceAll(text, "\r\n", "\n")), nil
	case linesCRLF:
		return []byte(text), nil
	case coded:
		body, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return nil, errors.New("the body is no base64")
		}
		return body, nil
	}
	return nil, fmt.Errorf("form: %q is none of lf, crlf and base64", form)
}

// resend replays one dead letter as it was changed.
func (d *Dashboard) resend(w http.ResponseWriter, r *http.Request, v visitor) {
	f := r.PostForm
	seq, err := strconv.ParseUint(f.Get("seq"), 10, 64)
	draft := Draft{Exchange: f.Get("exchange"), RoutingKey: f.Get("routing_key"), Properties: f.Get("properties")}
	if err == nil {
		draft.Queue, err = strconv.ParseUint(f.Get("queue"), 10, 64)
	}
	if err == nil {
		draft.Body, err = bodyOf(f.Get("form"), f.Get("body"))
	}
	left := ""
	if err == nil {
		left, err = d.DeadLetters.Resend(r.Context(), v.User, f.Get("vhost"), f.Get("name"), seq, draft)
	}
	if err == nil && left != "" {
		err = fmt.Errorf("the message stays where it is, as those that %s", leftWords(left))
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	d.log.Info("dead letter replayed with changes", zap.String("user", v.Name), zap.String("vhost", f.Get("vhost")), zap.String("queue", f.Get("name")), zap.Uint64("seq", seq))
	http.Redirect(w, r, with("/dead-letter", url.Values{"vhost": f["vhost"], "name": f["name"]}, "replayed", "1"), http.StatusSeeOther)
}
