package topology

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"curfew/broker/access"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// deletion is the page that asks whether to delete a queue, or to purge it.
type deletion struct {
	operate.QueueDetail
	Form     *ui.Form
	Messages int                  // that would be deleted: ready, unacked, waiting and dead letters; by a purge only the ready ones
	Position deadletters.Position // of a purge: messages that had entered the queue by then
}

// deletion is for those who may do it.
func (p Pages) deletion(r *http.Request, v ui.Visitor, values url.Values, do access.Operation) (*deletion, error) {
	q, err := p.queue(r, v, values, do)
	if err != nil {
		return nil, err
	}
	return &deletion{QueueDetail: q, Form: ui.NewForm(values), Messages: q.Ready + q.Unacked + q.Waiting + q.OwnDeadLetters}, nil
}

func (p Pages) askDeleteQueue(r *http.Request, v ui.Visitor) (ui.View, error) {
	d, err := p.deletion(r, v, r.URL.Query(), access.Configure)
	if err != nil {
		return nil, err
	}
	return &queueDeletion{d}, nil
}

func (p Pages) deleteQueue(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	d, err := p.deletion(r, v, r.PostForm, access.Configure)
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	f := d.Form
	id, err := strconv.ParseUint(f.Get("queue"), 10, 64)
	if err != nil {
		p.Site.Refuse(w, r, operate.ErrNotFound)
		return
	}
	asked, _ := f.Integer("asked")
	most := int(asked)
	if most == 0 || f.Confirmed(strconv.Itoa(most)) {
		_, err = p.Operations.DeleteQueue(r.Context(), v.Actor(), ui.Named(f.Values), operate.QueueDeletion{
			QueueID: id, IfUnused: f.Checked("if_unused"), IfEmpty: f.Checked("if_empty"), AtMost: &most,
		})
	}
	if err != nil || !f.OK() {
		f.Values.Del("confirm")
		f.Again(p.Site, w, r, v, deleteQueue, err, &queueDeletion{d})
		return
	}
	http.Redirect(w, r, ui.At(queuesTab, "said", "queue_deleted"), http.StatusSeeOther)
}

func (p Pages) askPurge(r *http.Request, v ui.Visitor) (ui.View, error) {
	d, err := p.deletion(r, v, r.URL.Query(), access.Read)
	if err == nil {
		err = p.count(r, v, d)
	}
	if err != nil {
		return nil, err
	}
	return &queuePurge{d}, nil
}

// count asks how many messages a purge would delete now.
func (p Pages) count(r *http.Request, v ui.Visitor, d *deletion) error {
	_, err := p.Operations.PurgeSeen(r.Context(), v.Actor(), ui.Named(d.Form.Values), deadletters.Confirmation{Messages: -1})
	asks, isQuestion := errors.AsType[*deadletters.Unconfirmed](err)
	if !isQuestion {
		return err
	}
	d.Messages, d.Position = asks.Matched, asks.Position
	return nil
}

func (p Pages) purge(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	d, err := p.deletion(r, v, r.PostForm, access.Read)
	if err == nil {
		err = d.Position.UnmarshalText([]byte(d.Form.Get("position")))
	}
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	f := d.Form
	asked, _ := f.Integer("asked")
	n := 0
	if f.Confirmed(strconv.Itoa(int(asked))) {
		n, err = p.Operations.PurgeSeen(r.Context(), v.Actor(), ui.Named(f.Values), deadletters.Confirmation{Messages: int(asked), Position: d.Position})
		if _, changed := errors.AsType[*deadletters.Unconfirmed](err); changed {
			f.Wrong("confirm", "Nothing was deleted: the queue has changed.")
			err = nil
		}
	}
	if err != nil {
		p.Site.Refuse(w, r, err)
		return
	}
	if !f.OK() {
		f.Values.Del("confirm")
		if err := p.count(r, v, d); err != nil {
			p.Site.Refuse(w, r, err)
			return
		}
		f.Again(p.Site, w, r, v, purgeQueue, nil, &queuePurge{d})
		return
	}
	http.Redirect(w, r, ui.QueueURL(d.VHost, d.Name)+"&purged="+strconv.Itoa(n), http.StatusSeeOther)
}
