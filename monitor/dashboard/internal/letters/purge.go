package letters

import (
	"errors"
	"net/http"
	"strconv"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/ui"
)

// purgePlan is a deletion that the user confirms by typing the number of messages.
type purgePlan struct {
	chosen
	Form     *ui.Form
	Matched  int
	Position deadletters.Position // the messages that had entered the queue then
}

// purge deletes dead letters if the user typed the number that the page asked for. Otherwise it
// asks for it. Only messages that are in the queue now are deleted: later ones stay.
func (d Pages) purge(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p := &purgePlan{chosen: chosenBy(r.PostForm), Form: ui.NewForm(r.PostForm)}
	if d.stopped(w, r, v, &p.chosen) {
		return
	}
	f, c, status := p.Form, deadletters.Confirmation{Messages: -1}, http.StatusOK
	if err := c.Position.UnmarshalText([]byte(f.Get("position"))); err != nil {
		d.Site.Refuse(w, r, err)
		return
	}
	if n, _ := f.Integer("asked"); f.Get("confirm") != "" && f.Confirmed(strconv.FormatInt(n, 10)) {
		c.Messages = int(n)
	}
	if !f.OK() {
		status = http.StatusBadRequest
	}
	takeTime(w)
	n, err := d.Operations.PurgeDeadLetters(r.Context(), v.Actor(), p.letters(), c)
	unconfirmed, asks := errors.AsType[*deadletters.Unconfirmed](err)
	switch {
	case asks:
		p.Matched, p.Position = unconfirmed.Matched, unconfirmed.Position
		f.Values.Del("confirm")
		d.Site.Show(w, r, status, v, "/purge", p)
	case err != nil:
		d.Site.Refuse(w, r, err)
	default:
		http.Redirect(w, r, ui.With(URL(p.VHost, p.Queue)+"&deleted="+strconv.Itoa(n), nil), http.StatusSeeOther)
	}
}
