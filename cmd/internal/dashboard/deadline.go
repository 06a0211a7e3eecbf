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

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// deadlineChange is a requested change of a message's deadline.
type deadlineChange struct {
	Was  int64 // Unix ms; 0: none. If the message has another deadline by now, nothing changes
	To   int64 // Unix ms; 0: none
	Fire bool  // expire it now; To is not used
	Drop bool  // with Fire: not dead-lettered
}

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
	Change deadlineChange
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
	if operate.Refused(err) {
		p.Refused = true
		return p, nil
	}
	return p, err
}

// lookAtDeadline finds the message that a query or a form names.
func (d *Dashboard) lookAtDeadline(ctx context.Context, v ui.Visitor, q url.Values) (*deadlinePage, error) {
	p := &deadlinePage{VHost: q.Get("vhost"), Queue: q.Get("name"), Now: d.state().NowMillis}
	n, err := strconv.ParseUint(q.Get("seq"), 10, 64)
	if err != nil {
		return p, operate.ErrMessageGone
	}
	m, err := d.Operations.Look(ctx, v.Actor(), ui.Named(q), operate.Seq(n), peekBody)
	if p.QueueID = m.QueueID; err == nil && q.Has("queue") && q.Get("queue") != strconv.FormatUint(m.QueueID, 10) {
		err = operate.ErrMessageGone // the number is another message's
	}
	if err == nil {
		p.Message, p.Changes = viewMessage(&m, 0), d.Operations.May(v.Actor(), messages.ChangeDeadline.Name, ui.Named(q))
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
		p.Change, err = wantedChange(f, p.Message.DeadlineMillis)
	}
	if err == nil && f.Get("confirmed") != "1" {
		d.pages["/deadline-plan"].write(w, r, http.StatusOK, v, p)
		return
	}
	var done messages.DeadlineChanged
	if err == nil {
		done, err = messages.ChangeDeadline.Do(r.Context(), d.Operations.Access, v.Actor(), p.request())
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, ui.With("/queue", url.Values{"vhost": {p.VHost}, "name": {p.Queue}}, "changed", done.Outcome), http.StatusSeeOther)
}

// request is the change as the operation takes it.
func (p *deadlinePlan) request() messages.DeadlineChange {
	c := &p.Change
	return messages.DeadlineChange{
		VHost: p.VHost, Queue: p.Queue, Seq: p.Message.Seq, At: c.To, Cancel: !c.Fire && c.To == 0, Fire: c.Fire, Drop: c.Drop, Was: &c.Was, QueueID: p.QueueID,
	}
}

// wantedChange reads a form. A confirmed form has the instant that the user saw. An extension counts
// from the deadline that the user saw, or without one from the present deadline.
func wantedChange(f url.Values, present int64) (c deadlineChange, err error) {
	c.Was = present
	if text := f.Get("was"); text != "" {
		if c.Was, err = strconv.ParseInt(text, 10, 64); err != nil {
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
		c.To = max(c.Was+by.Milliseconds(), 1)
	case "set":
		at, err := deadline.ParseTime(f.Get("at"))
		if err != nil {
			return c, fmt.Errorf("at: %w", err)
		}
		c.To = at.UnixMilli()
	case "to":
		c.To, err = strconv.ParseInt(f.Get("to"), 10, 64)
	case "cancel":
	case "fire":
		c.Fire, c.Drop = true, f.Get("drop") == "1"
	default:
		err = errors.New("choose what to do with the deadline")
	}
	return c, err
}
