package topology

import (
	"net/http"
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker"
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
		_, err = p.Operations.DeleteQueue(r.Context(), v.Actor, ui.Named(f.Values), broker.QueueDeletion{
			QueueID: id, IfUnused: f.Get("if_unused") != "", IfEmpty: f.Get("if_empty") != "", AtMost: &most,
		})
	}
	if err != nil || !f.OK() {
		f.Values.Del("confirm")
		f.Again(p.Site, w, r, v, deleteQueue, err, d.draw)
		return
	}
	http.Redirect(w, r, ui.At(queuesTab, "said", "queue_deleted"), http.StatusSeeOther)
}

// QueueMenu is what the actor may do with a queue.
func QueueMenu(o *operate.Operations, a operate.Actor, vhost, name string) g.Node {
	to := func(path string) string { return ui.At(path, "vhost", vhost, "name", name) }
	read, write := operate.MayQueue(o, a, access.Read, vhost, name), operate.MayQueue(o, a, access.Write, vhost, name)
	return ui.Menu("Actions",
		g.If(operate.MayExchange(o, a, access.Write, vhost, ""), ui.Action(ui.At(PublishPath, "vhost", vhost, "key", name), "Publish…")),
		g.If(read, ui.Action(to(getMessage), "Get…")),
		g.If(write, ui.Action(ui.At("/binding/new", "vhost", vhost, "destination", name), "Bind…")),
		g.If(read, ui.DangerLink(to("/queue/purge"), "Purge…")),
		g.If(operate.MayQueue(o, a, access.Configure, vhost, name), ui.DangerLink(to(deleteQueue), "Delete…")))
}

func (d *deletion) draw(s *ui.Info) ui.Drawing {
	f := d.Form
	typed := g.Node(nil)
	if d.Messages > 0 {
		typed = f.Typed(strconv.Itoa(d.Messages))
	}
	return ui.Drawing{Live: g.Group{
		ui.QueueCrumbs(d.VHost, d.Name), h.H1(g.Text("Delete the queue "), ui.Name(d.Name), g.Text("?")),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Messages", g.If(d.Messages > d.OwnDeadLetters, h.Class("bad")), g.Text(ui.Number(d.Messages-d.OwnDeadLetters)+": they are lost, and not dead-lettered. If more arrive before the deletion, the queue stays.")),
			g.If(d.OwnDeadLetters > 0, ui.Fact("Dead letters", h.Class("bad"),
				g.Text(ui.Number(d.OwnDeadLetters)+": they are lost, too. No queue has taken them yet, or they are in the queue's own dead-letter queue, which is deleted with it."))),
			ui.Fact("Consumers", g.If(d.Consumers > 0, h.Class("warn")), g.Text(ui.Number(d.Consumers)+": they are cancelled.")))),
		h.Section(h.Class("card"), s.Sheet(deleteQueue, f, g.Group{ui.Hidden("vhost", d.VHost), ui.Hidden("name", d.Name), ui.Hidden("asked", strconv.Itoa(d.Messages)), ui.Hidden("queue", ui.Text(d.ID)),
			h.FieldSet(h.Legend(g.Text("Only if")), f.Check("it is empty", "if_empty"), f.Check("it has no consumers", "if_unused")), typed},
			ui.Button("Delete the queue", h.Class("danger")), ui.Link(ui.QueueURL(d.VHost, d.Name), g.Text("Cancel")))),
	}}
}
