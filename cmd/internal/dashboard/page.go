package dashboard

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"go.uber.org/zap"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/incident"
)

// page is one page of a dashboard.
type page struct {
	ui.Page
	d *Dashboard
}

// makePages returns all pages, by path.
func (d *Dashboard) makePages() map[string]*page {
	pages := map[string]ui.Page{
		"/audit":  {Title: "Audit", Tab: "/audit", Build: d.audit},
		"/login":  {Title: "Log in"},
		"/failed": {Title: "Error"},
	}
	if d.Operations != nil {
		pages["/queues"] = ui.Page{Title: "Queues", Tab: "/queues", Live: true, Build: d.queues}
		pages["/queue"] = ui.Page{Title: "Queue", Tab: "/queues", Live: true, Build: d.queue}
		pages["/deadline"] = ui.Page{Title: "Deadline", Tab: "/queues", Build: d.deadline}
		pages["/deadline-plan"] = ui.Page{Title: "Deadline", Tab: "/queues"}
	}
	if d.RabbitMQ != nil {
		pages["/rabbitmq"] = ui.Page{Title: "RabbitMQ", Tab: "/rabbitmq", Live: true, Build: rabbitmqPages{d}.build}
	}
	for _, group := range d.groups {
		maps.Copy(pages, group.Pages)
	}
	made := make(map[string]*page)
	for path, p := range pages {
		made[path] = &page{p, d}
	}
	return made
}

// serve answers with the page.
func (p *page) serve(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	content, err := p.Build(r, v)
	if err != nil {
		p.d.Refuse(w, r, err)
		return
	}
	p.write(w, r, http.StatusOK, v, content)
}

// Refuse answers with a page about the error.
func (d *Dashboard) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	role, isRole := errors.AsType[*operate.MissingRole](err)
	missing, isMissing := errors.AsType[*operate.Missing](err)
	away, isAway := errors.AsType[*operate.Unavailable](err)
	switch {
	case isMissing:
		d.Fail(w, r, http.StatusNotFound, sentence(missing)+" Reload the page.")
	case isAway:
		d.Fail(w, r, http.StatusServiceUnavailable, sentence(away))
	case errors.Is(err, incident.ErrNotSaved):
		d.Fail(w, r, http.StatusInternalServerError, sentence(err))
	case isRole:
		d.Fail(w, r, http.StatusForbidden, sentence(role))
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

// sentence is the text of an error with a capital letter and a full stop.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// write answers with the whole page.
func (p *page) write(w http.ResponseWriter, r *http.Request, status int, v ui.Visitor, content ui.View) {
	s := p.info(r, v)
	text, err := markup(p.d.layout(s, content.Draw(s)))
	if err != nil {
		p.d.log.Error("render", zap.String("page", p.Title), zap.Error(err))
		http.Error(w, "the page could not be made; see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // it fails only if the client is gone
}

// said are the results of changes that lead to a list, by the name in the list's URL.
var said = map[string]string{
	"acknowledged": "Acknowledged: nobody is told of it again until it is over.", "unacknowledged": "Acknowledgement ended: it is told again.",
	"window_begun": "Maintenance begun: it is shown, and nobody is told.", "window_ended": "Maintenance ended.",
	"queue_deleted": "Queue deleted.", "connection_closed": "Connection closed.", "filter_saved": "Filter saved.", "filter_deleted": "Filter deleted.",
}

func (p *page) info(r *http.Request, v ui.Visitor) *ui.Info {
	s := &ui.Info{
		Title: p.Title, Tab: p.Tab, Instance: p.d.Instance, Version: p.d.Version,
		User: v.User, Token: v.Token, Basic: v.Basic, Here: r.URL.RequestURI(), Theme: themeOf(r), Said: said[r.URL.Query().Get("said")],
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
	if asked := d.pages[r.URL.Path]; asked != nil && d.pages[asked.Tab] != nil {
		above = d.pages[asked.Tab]
	}
	d.Show(w, r, status, v, "/failed", failure{status, text, above})
}

// Show answers with the page at path, which shows content.
func (d *Dashboard) Show(w http.ResponseWriter, r *http.Request, status int, v ui.Visitor, path string, content ui.View) {
	d.pages[path].write(w, r, status, v, content)
}

// sessionOver answers a form from a user who is no longer logged in. The form can be sent again: its token is the user's.
type sessionOver struct{}

func (sessionOver) Draw(*ui.Info) ui.Drawing {
	return ui.Drawing{Live: h.Section(h.Class("card empty"), h.Role("alert"),
		h.H1(g.Text("Log in again")),
		h.P(g.Text("Your session has ended, and nothing was done. "), h.A(h.Href("/login"), h.Target("_blank"), g.Text("Log in again in another tab")),
			g.Text(", then reload this page: your form is sent again as it was.")))}
}

// failure is the content of the page about an error.
type failure struct {
	status int // HTTP
	text   string
	above  *page // the one above what was asked for
}

func (f failure) Draw(*ui.Info) ui.Drawing {
	heading := map[int]string{http.StatusNotFound: "Not here", http.StatusForbidden: "Not allowed"}[f.status]
	return ui.Drawing{Live: h.Section(h.Class("card empty"), h.Role("alert"),
		h.H1(g.Text(cmp.Or(heading, "Something went wrong"))),
		h.P(ui.Name(f.text)),
		h.P(ui.Link(f.above.Tab, g.Text("Back to: "+f.above.Title))))}
}
