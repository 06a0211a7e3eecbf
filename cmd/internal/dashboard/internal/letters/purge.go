package letters

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// purgePlan is a deletion that the user confirms by typing the number of messages.
type purgePlan struct {
	chosen
	Form    *ui.Form
	Matched int
}

// purge deletes dead letters if the user typed the number that the page asked for. Otherwise it asks for it. Only what was in the queue when it
// was asked for first is deleted: later messages stay, however long the user thinks and however fast the queue grows.
func (d Pages) purge(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p := &purgePlan{chosen: chosenBy(r.PostForm), Form: ui.NewForm(r.PostForm)}
	if d.stopped(w, r, v, &p.chosen) {
		return
	}
	f, status := p.Form, http.StatusOK
	request := operate.PurgeRequest{VHost: p.Queue.VHost, Queue: p.Queue.Name, Filter: p.Filter, Position: p.Position}
	if n, _ := f.Integer("asked"); f.Get("confirm") != "" && f.Confirmed(strconv.FormatInt(n, 10)) {
		request.Confirm = new(int(n))
	}
	if !f.OK() {
		status = http.StatusBadRequest
	}
	takeTime(w)
	do := func(ctx context.Context) (int, error) {
		done, err := operate.PurgeDeadLetters.Do(ctx, d.Operations.Access, v.Actor(), request)
		return done.Deleted, err
	}
	var n int
	var err error
	if request.Confirm == nil {
		n, err = do(r.Context()) // it only counts
	} else {
		n, err = d.long(r, v, operate.PurgeDeadLetters.Name, p.Queue, "deleted", do)
	}
	unconfirmed, asks := errors.AsType[*deadletters.Unconfirmed](err)
	switch {
	case asks:
		p.Matched, p.Position = unconfirmed.Matched, unconfirmed.Position
		f.Values.Del("confirm")
		d.Site.Show(w, r, status, v, "/purge", p)
	case err != nil:
		d.Site.Refuse(w, r, err)
	default:
		http.Redirect(w, r, URL(p.Queue.VHost, p.Queue.Name)+"&deleted="+strconv.Itoa(n), http.StatusSeeOther)
	}
}

func (p *purgePlan) Draw(s *ui.Info) ui.Drawing {
	list, path := URL(p.Queue.VHost, p.Queue.Name), crumbs(p.Queue.VHost, p.Queue.Name)
	if p.Matched == 0 {
		return ui.Drawing{Live: g.Group{path, h.H1(g.Text("There is nothing to delete")), ui.Only(g.Text("No message matches now. "), ui.Link(list, g.Text("Back")))}}
	}
	n := strconv.Itoa(p.Matched)
	return ui.Drawing{Live: g.Group{
		path,
		h.H1(g.Text("Delete " + ui.Plural(p.Matched, "message") + " for good?")),
		h.Section(h.Class("card"), ui.Facts(p.facts()...)),
		h.Section(h.Class("card"), s.Sheet(purgePath, p.Form, g.Group{p.fields(p.Position), ui.Hidden("asked", n), p.Form.Typed(n)}, ui.Danger("Delete them"), ui.Link(list, g.Text("Cancel")))),
	}}
}
