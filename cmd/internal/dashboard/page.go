package dashboard

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"go.uber.org/zap"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/incident"
)

// makePages returns all pages, by path.
func (d *Dashboard) makePages() map[string]ui.Page {
	pages := map[string]ui.Page{
		"/audit":  {Title: "Audit", Tab: "/audit", Build: d.audit},
		"/login":  {Title: "Log in"},
		"/failed": {Title: "Error"},
	}
	if d.Operations != nil {
		pages["/queues"] = ui.Page{Title: "Queues", Tab: "/queues", Live: true, Build: d.queues}
		pages["/queue"] = ui.Page{Title: "Queue", Tab: "/queues", Live: true, Build: d.queue}
	}
	if d.RabbitMQ != nil {
		pages["/rabbitmq"] = ui.Page{Title: "RabbitMQ", Tab: "/rabbitmq", Live: true, Build: d.rabbitmq}
	}
	for _, group := range d.groups {
		maps.Copy(pages, group.Pages)
	}
	return pages
}

// Refuse answers with a page about the error.
func (d *Dashboard) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	role, isRole := errors.AsType[*operate.MissingRole](err)
	missing, isMissing := errors.AsType[*operate.Missing](err)
	away, isAway := errors.AsType[*operate.Unavailable](err)
	switch {
	case isMissing:
		d.Fail(w, r, http.StatusNotFound, ui.Sentence(missing.Error())+". Reload the page.")
	case isAway:
		d.Fail(w, r, http.StatusServiceUnavailable, ui.Sentence(away.Error())+".")
	case errors.Is(err, incident.ErrNotSaved):
		d.Fail(w, r, http.StatusInternalServerError, ui.Sentence(err.Error())+".")
	case isRole:
		d.Fail(w, r, http.StatusForbidden, ui.Sentence(role.Error())+".")
	case operate.Refused(err):
		d.Fail(w, r, http.StatusForbidden, "This user lacks the permission to do that with the queue. Ask for it, or log in as another user.")
	case operate.Gone(err):
		d.Fail(w, r, http.StatusNotFound, gone(r))
	default:
		d.Fail(w, r, http.StatusBadRequest, err.Error())
	}
}

// gone says that what a page was asked for is not there.
func gone(r *http.Request) string {
	what, name, vhost := "It", r.FormValue("name"), r.FormValue("vhost")
	switch {
	case name != "" && vhost != "":
		what = fmt.Sprintf("%q of the virtual host %q", name, vhost)
	case name != "":
		what = fmt.Sprintf("%q", name)
	}
	if r.Method == http.MethodGet && r.FormValue("seq") == "" {
		return what + " no longer exists, or never did."
	}
	return what + " no longer exists, or it has changed. Reload the page."
}

// said are the results of changes that lead to a list, by the name in the list's URL.
var said = map[string]string{
	"acknowledged": "Acknowledged: nobody is told of it again until it is over, or for the time that you chose.", "unacknowledged": "Acknowledgement ended: it is told again.",
	"window_begun": "Maintenance begun: it is shown, and nobody is told.", "window_ended": "Maintenance ended.",
	"queue_deleted": "Queue deleted.", "connection_closed": "Connection closed.", "filter_saved": "Filter saved.", "filter_deleted": "Filter deleted.",
}

func (d *Dashboard) info(p *ui.Page, r *http.Request, v ui.Visitor) *ui.Info {
	s := &ui.Info{
		Title: p.Title, Tab: p.Tab, Instance: d.Instance, Version: d.Version, Visitor: v, Here: r.URL.RequestURI(), Theme: themeOf(r), Said: said[r.URL.Query().Get("said")],
	}
	if of := r.URL.Query().Get("of"); s.Said != "" && of != "" { // the ID of an incident
		for _, i := range d.Incidents.View().Open {
			if i.ID == of {
				s.Said += " " + ui.Visible(i.Summary)
			}
		}
	}
	if p.Live {
		s.Live = "/live" + r.URL.RequestURI()
	}
	return s
}

// markup is the HTML of a node; it is empty for nil.
func markup(n g.Node) ([]byte, error) {
	if n == nil {
		return nil, nil
	}
	var b bytes.Buffer
	err := n.Render(&b)
	return b.Bytes(), err
}

// Fail answers with a page that explains an error.
func (d *Dashboard) Fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	v, err := d.visitor(r)
	if err != nil {
		v = ui.Visitor{}
	}
	above := d.pages["/"]
	if tab, is := d.pages[d.pages[r.URL.Path].Tab]; is {
		above = tab
	}
	heading := map[int]string{http.StatusNotFound: "Not here", http.StatusForbidden: "Not allowed"}[status]
	d.Show(w, r, status, v, "/failed", alert(cmp.Or(heading, "Something went wrong"), ui.Name(text), h.P(ui.Link(above.Tab, g.Text("Back to: "+above.Title)))))
}

// alert is a page that says why something was not done.
func alert(heading string, why g.Node, more ...g.Node) ui.View {
	card := h.Section(h.Class("card empty"), h.Role("alert"), h.H1(g.Text(heading)), h.P(why), g.Group(more))
	return func(*ui.Info) ui.Drawing { return ui.Drawing{Live: card} }
}

// Show answers with the page at path, which shows content.
func (d *Dashboard) Show(w http.ResponseWriter, r *http.Request, status int, v ui.Visitor, path string, content ui.View) {
	page := d.pages[path]
	s := d.info(&page, r, v)
	text, err := markup(d.layout(s, content(s)))
	if err != nil {
		d.log.Error("render", zap.String("page", page.Title), zap.Error(err))
		http.Error(w, "the page could not be made; see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // it fails only if the client is gone
}
