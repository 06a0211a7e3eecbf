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
	path    string // its page: that of a queue, or of dead letters
}

// askPurge is the page that asks whether to delete all ready messages of a queue.
func (d Pages) askPurge(r *http.Request, v ui.Visitor) (ui.View, error) {
	p := &purgePlan{chosen: chosenBy(r.URL.Query()), Form: ui.NewForm(nil), path: queuePurgePath}
	p.Filter = ""
	_, err := operate.PurgeQueue.Do(r.Context(), d.Operations, v.Actor, operate.PurgeRequest{VHost: p.VHost, Queue: p.Queue})
	return p.draw, p.count(err)
}

// count notes how many messages would be deleted, if err says so.
func (p *purgePlan) count(err error) error {
	if asks, is := errors.AsType[*deadletters.Unconfirmed](err); is {
		p.Matched, p.Position = asks.Matched, asks.Position
		return nil
	}
	return err
}

// purge deletes messages if the user typed the number that the page asked for. Otherwise it asks for it. Only what was in the queue when it
// was asked for first is deleted: later messages stay, however long the user thinks and however fast the queue grows.
func (d Pages) purge(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	p := &purgePlan{chosen: chosenBy(r.PostForm), Form: ui.NewForm(r.PostForm), path: r.URL.Path}
	if d.stopped(w, r, v, &p.chosen) {
		return
	}
	f, op, done := p.Form, operate.PurgeDeadLetters, "deleted"
	if p.path == queuePurgePath {
		op, done = operate.PurgeQueue, "purged"
	}
	request := operate.PurgeRequest{VHost: p.VHost, Queue: p.Queue, Filter: p.Filter, Position: p.Position}
	if n, _ := f.Value("asked", operate.Number).(int64); n > 0 && f.Confirmed(strconv.FormatInt(n, 10)) {
		request.Confirm = new(int(n))
	}
	takeTime(w)
	do := func(ctx context.Context) (int, error) {
		done, err := op.Do(ctx, d.Operations, v.Actor, request)
		return done.Deleted, err
	}
	var n int
	var err error
	if request.Confirm == nil {
		n, err = do(r.Context()) // it only counts
	} else {
		n, err = d.long(r, v, op.Name, ui.Named(r.PostForm), "deleted", do)
	}
	switch asks := p.count(err) == nil; {
	case err == nil:
		http.Redirect(w, r, p.back()+"&"+done+"="+strconv.Itoa(n), http.StatusSeeOther)
	case !asks:
		d.Site.Refuse(w, r, err)
	default:
		if request.Confirm != nil {
			f.Wrong("confirm", "Nothing was deleted: the queue has changed.")
		}
		f.Values.Del("confirm")
		d.Site.Show(w, r, map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[f.OK()], v, p.path, p.draw)
	}
}

// back is the page that the deletion was chosen on.
func (p *purgePlan) back() string {
	if p.path == queuePurgePath {
		return ui.QueueURL(p.VHost, p.Queue)
	}
	return URL(p.VHost, p.Queue, "")
}

func (p *purgePlan) crumbs() g.Node {
	if p.path == queuePurgePath {
		return ui.QueueCrumbs(p.VHost, p.Queue)
	}
	return crumbs(p.VHost, p.Queue)
}

func (p *purgePlan) draw(s *ui.Info) ui.Drawing {
	if p.Matched == 0 {
		return ui.Drawing{Live: g.Group{p.crumbs(), h.H1(g.Text("There is nothing to delete")), ui.Only(g.Text("No message matches now. "), ui.Link(p.back(), g.Text("Back")))}}
	}
	n := strconv.Itoa(p.Matched)
	facts := append(p.facts(), ui.Fact("Messages", g.Text("those that are ready now; messages that arrive later, or that consumers hold, stay")))
	return ui.Drawing{Live: g.Group{
		p.crumbs(),
		h.H1(g.Text("Delete " + ui.Plural(p.Matched, "message") + " for good?")),
		h.Section(h.Class("card"), ui.Facts(facts...)),
		h.Section(h.Class("card"), s.Sheet(p.path, p.Form, g.Group{p.fields(p.Position), ui.Hidden("asked", n), p.Form.Typed(n)}, ui.Button("Delete them", h.Class("danger")), ui.Link(p.back(), g.Text("Cancel")))),
	}}
}
