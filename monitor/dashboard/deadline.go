package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"
)

// DeadlineChange is what is to become of a message's deadline.
type DeadlineChange struct {
	Was  int64 // Unix ms; 0: it has none. It stays as it is if that is not so any more
	To   int64 // Unix ms; 0: none
	Fire bool  // it comes now, and To means nothing
	Drop bool  // with Fire: not dead-lettered
}

// deadlinePage is what the page of a message's deadline shows.
type deadlinePage struct {
	VHost, Queue string
	Message      shownMessage
	Refused      bool // the user may not read the queue
	Now          int64
}

// deadlinePlan is a change as it was asked for, to be confirmed.
type deadlinePlan struct {
	deadlinePage
	Change DeadlineChange
}

// changed are the outcomes of changes, in words.
var changed = map[string]string{
	"rescheduled": "The message has its new deadline.",
	"expired":     "The message has expired.",
	"held":        "A consumer holds the message: it stays with him, and expires if it comes back.",
}

func deadlineURL(vhost, queue string, seq uint64) string {
	return "/deadline?" + url.Values{"vhost": {vhost}, "name": {queue}, "seq": {strconv.FormatUint(seq, 10)}}.Encode()
}

func (d *Dashboard) deadline(r *http.Request, v visitor) (view, error) {
	q := r.URL.Query()
	p := &deadlinePage{VHost: q.Get("vhost"), Queue: q.Get("name"), Now: d.Broker.State().Now}
	err := p.look(d.Broker, v.User, q.Get("seq"))
	if errors.Is(err, ErrForbidden) {
		p.Refused = true
		return p, nil
	}
	return p, err
}

// look gathers the message of that number.
func (p *deadlinePage) look(b Broker, u User, seq string) error {
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return ErrGone
	}
	m, err := b.Look(u, p.VHost, p.Queue, n)
	if err == nil {
		p.Message = showMessage(m, 0)
	}
	return err
}

// changeDeadline shows what a change would do, or, confirmed, does it.
func (d *Dashboard) changeDeadline(w http.ResponseWriter, r *http.Request, v visitor) {
	f := r.PostForm
	p := &deadlinePlan{deadlinePage: deadlinePage{VHost: f.Get("vhost"), Queue: f.Get("name"), Now: d.Broker.State().Now}}
	err := p.look(d.Broker, v.User, f.Get("seq"))
	if err == nil {
		p.Change, err = wantedChange(f, p.Message.Deadline)
	}
	if err == nil && f.Get("confirmed") != "1" {
		d.pages["/deadline-plan"].write(w, r, http.StatusOK, v, p)
		return
	}
	outcome := ""
	if err == nil {
		outcome, err = d.carryOut(r.Context(), v, p)
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, with("/queue", url.Values{"vhost": {p.VHost}, "name": {p.Queue}}, "changed", outcome), http.StatusSeeOther)
}

func (d *Dashboard) carryOut(ctx context.Context, v visitor, p *deadlinePlan) (string, error) {
	outcome, err := d.Broker.ChangeDeadline(ctx, v.User, p.VHost, p.Queue, p.Message.Seq, p.Change)
	if err == nil {
		d.log.Info("deadline changed", zap.String("user", v.Name), zap.String("vhost", p.VHost), zap.String("queue", p.Queue),
			zap.Uint64("seq", p.Message.Seq), zap.String("outcome", outcome), zap.Int64("from", p.Change.Was), zap.Int64("to", p.Change.To))
	}
	return outcome, err
}

// wantedChange reads a form. A confirmed one has the instant that was shown; what was
// asked for counts from the deadline that was seen, or else from the present one.
func wantedChange(f url.Values, present int64) (c DeadlineChange, err error) {
	c.Was = present
	if text := f.Get("was"); text != "" {
		if c.Was, err = strconv.ParseInt(text, 10, 64); err != nil {
			return c, fmt.Errorf("was: %q is no instant", text)
		}
	}
	switch f.Get("do") {
	case "extend", "shorten":
		by, err := time.ParseDuration(f.Get("by"))
		if err != nil || by < time.Millisecond {
			return c, fmt.Errorf("by %q: write how much, for example 90s, 10m or 1h30m", f.Get("by"))
		}
		if f.Get("do") == "shorten" {
			by = -by
		}
		c.To = max(c.Was+by.Milliseconds(), 1)
	case "set":
		c.To, err = instantOf(f.Get("at"))
	case "to":
		c.To, err = strconv.ParseInt(f.Get("to"), 10, 64)
	case "cancel":
	case "fire":
		c.Fire, c.Drop = true, f.Get("drop") == "1"
	default:
		err = errors.New("say what is to become of the deadline")
	}
	return c, err
}

// instantOf reads an instant as browsers write it, in UTC.
func instantOf(text string) (int64, error) {
	for _, form := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("at %q: write when, for example 2026-01-31T15:00:00", text)
}
