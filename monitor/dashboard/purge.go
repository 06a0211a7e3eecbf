package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/ui"
)

// purgePlan is a deletion that the user confirms by typing the number of messages.
type purgePlan struct {
	VHost, Queue string
	Filter       letterFilter
	Matched      int
	Position     deadletters.Position // the messages that had entered the queue then
	Typed        string               // the wrong number; "" none yet
}

// purge deletes dead letters if the user typed the number that the page asked for. Otherwise it
// asks, for the messages that are in the queue now: what arrives later is left alone.
func (d *Dashboard) purge(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	f := r.PostForm
	p := &purgePlan{VHost: f.Get("vhost"), Queue: f.Get("name"), Filter: readFilter(f), Typed: f.Get("confirm")}
	c := deadletters.Confirmation{Messages: -1}
	err := c.Position.UnmarshalText([]byte(f.Get("position")))
	if p.Typed != "" && err == nil {
		var n int
		if n, err = strconv.Atoi(p.Typed); err != nil {
			err = fmt.Errorf("%q is not a number of messages", p.Typed)
		}
		if asked := f.Get("asked"); asked == "" || asked == p.Typed {
			c.Messages = n
		}
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	takeTime(w)
	n, err := d.Operations.PurgeDeadLetters(r.Context(), v.Actor(), some(f), c)
	unconfirmed, asks := errors.AsType[*deadletters.Unconfirmed](err)
	switch {
	case asks:
		p.Matched, p.Position = unconfirmed.Matched, unconfirmed.Position
		d.pages["/purge"].write(w, r, http.StatusOK, v, p)
	case err != nil:
		d.refuse(w, r, err)
	default:
		http.Redirect(w, r, ui.With("/dead-letter", url.Values{"vhost": {p.VHost}, "name": {p.Queue}}, "deleted", strconv.Itoa(n)), http.StatusSeeOther)
	}
}
