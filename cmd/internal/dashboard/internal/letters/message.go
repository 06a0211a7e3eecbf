package letters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

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
	VHost, Queue string
	Seq          uint64
	Letter       operate.DeadLetter
	Position     deadletters.Position
	Properties   []ui.Pair
	Headers      []ui.Pair
	Deaths       []deadletters.Death // the oldest first
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
	if p.Seq, err = strconv.ParseUint(q.Get("seq"), 10, 64); err != nil {
		return nil, operate.ErrMessageGone
	}
	p.Letter, p.Position, err = d.Operations.DeadLetter(r.Context(), v.Actor(), ui.Named(q), operate.Seq(p.Seq), readBody)
	if operate.Refused(err) {
		p.Refused = true
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	l := &p.Letter
	p.Properties = ui.Properties(&l.Properties)
	p.Headers = slices.DeleteFunc(ui.Fields(l.Properties.Headers), func(h ui.Pair) bool { return h.Name == "x-death" && len(l.Deaths) > 0 })
	p.Deaths = slices.Clone(l.Deaths)
	slices.SortStableFunc(p.Deaths, func(a, b deadletters.Death) int { return a.Time.Compare(b.Time) })
	p.Body = showBody(l.Properties.ContentEncoding, l.Body, l.BodyBytes, p.Raw)
	p.May = rightsOf(d.Operations, v.Actor(), ui.Named(q))
	return p, nil
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

// body answers with the whole body, as it was sent or unpacked.
func (d Pages) body(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	q := r.URL.Query()
	seq, err := strconv.ParseUint(q.Get("seq"), 10, 64)
	if err != nil {
		d.Site.Refuse(w, r, operate.ErrMessageGone)
		return
	}
	l, _, err := d.Operations.DeadLetter(r.Context(), v.Actor(), ui.Named(q), operate.Seq(seq), 0)
	if err != nil {
		d.Site.Refuse(w, r, err)
		return
	}
	unpack := q.Get("unpacked") == "1" && deadletters.IsPacked(l.Properties.ContentEncoding)
	needs := int64(copies * l.BodyBytes)
	if unpack {
		needs += copies * maxUnpacked
	}
	release, err := d.Operations.Hold(v.Name, needs)
	defer release()
	if err == nil {
		l, _, err = d.Operations.DeadLetter(r.Context(), v.Actor(), ui.Named(q), operate.Seq(seq), -1)
	}
	body := l.Body
	if err == nil && unpack {
		var more bool
		if body, more, err = deadletters.Unpack(l.Properties.ContentEncoding, l.Body, maxUnpacked); err == nil && more {
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
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="message-%d.%s"`, seq, kind))
	_, _ = w.Write(body) // it fails only if the client is gone
}
