package topology

import (
	"net/http"
	"net/url"
	"strconv"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// deletion is the page that asks whether to delete a queue.
type deletion struct {
	operate.QueueDetail
	Form     *ui.Form
	Messages int // that would be deleted: ready, unacked, waiting and dead letters
}

// deletion is for those who may do it.
func (p Pages) deletion(r *http.Request, v ui.Visitor, values url.Values) (*deletion, error) {
	q, err := p.queue(r, v, values, access.Configure)
	if err != nil {
		return nil, err
	}
	return &deletion{QueueDetail: q, Form: ui.NewForm(values), Messages: q.Ready + q.Unacked + q.Waiting + q.OwnDeadLetters}, nil
}

func (p Pages) askDeleteQueue(r *http.Request, v ui.Visitor) (ui.View, error) {
	return p.deletion(r, v, r.URL.Query())
}

func (p Pages) deleteQueue(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	d, err := p.deletion(r, v, r.PostForm)
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
	asked, _ := f.Value("asked", operate.Number).(int64)
	most := int(asked)
	if most == 0 || f.Confirmed(strconv.Itoa(most)) {
		_, err = p.Operations.DeleteQueue(r.Context(), v.Actor(), ui.Named(f.Values), operate.QueueDeletion{
			QueueID: id, IfUnused: f.Checked("if_unused"), IfEmpty: f.Checked("if_empty"), AtMost: &most,
		})
	}
	if err != nil || !f.OK() {
		f.Values.Del("confirm")
		f.Again(p.Site, w, r, v, deleteQueue, err, d)
		return
	}
	http.Redirect(w, r, ui.At(queuesTab, "said", "queue_deleted"), http.StatusSeeOther)
}
