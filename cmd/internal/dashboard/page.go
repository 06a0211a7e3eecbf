package dashboard

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/incident"
)

// page is one page.
type page struct {
	d     *Dashboard
	title string
	tab   string // the entry of the menu it belongs to
	live  bool   // part of it is updated
	// build gathers what the page shows; nil: handlers do.
	build func(r *http.Request, v ui.Visitor) (ui.View, error)
}

// makePages returns all pages, by path.
func (d *Dashboard) makePages() map[string]*page {
	pages := map[string]*page{
		"/audit":  {title: "Audit", tab: "/audit", build: d.audit},
		"/login":  {title: "Log in"},
		"/failed": {title: "Error"},
	}
	if d.Operations != nil {
		pages["/queues"] = &page{title: "Queues", tab: "/queues", live: true, build: d.queues}
		pages["/queue"] = &page{title: "Queue", tab: "/queues", live: true, build: d.queue}
		pages["/deadline"] = &page{title: "Deadline", tab: "/queues", build: d.deadline}
		pages["/deadline-plan"] = &page{title: "Deadline", tab: "/queues"}
	}
	if d.RabbitMQ != nil {
		pages["/rabbitmq"] = &page{title: "RabbitMQ", tab: "/rabbitmq", live: true, build: rabbitmqPages{d}.build}
	}
	for _, group := range d.groups {
		for path, p := range group.Pages {
			pages[path] = &page{title: p.Title, tab: p.Tab, live: p.Live, build: p.Build}
		}
	}
	for _, p := range pages {
		p.d = d
	}
	return pages
}

// serve answers with the page.
func (p *page) serve(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	content, err := p.build(r, v)
	if err != nil {
		p.d.refuse(w, r, err)
		return
	}
	p.write(w, r, http.StatusOK, v, content)
}

// refuse answers with a page about the error.
func (d *Dashboard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	role, isRole := errors.AsType[*operate.MissingRole](err)
	missing, isMissing := errors.AsType[*operate.Missing](err)
	away, isAway := errors.AsType[*operate.Unavailable](err)
	switch {
	case isMissing:
		d.fail(w, r, http.StatusNotFound, sentence(missing)+" Reload the page.")
	case isAway:
		d.fail(w, r, http.StatusServiceUnavailable, sentence(away))
	case errors.Is(err, incident.ErrNotSaved):
		d.fail(w, r, http.StatusInternalServerError, sentence(err))
	case isRole:
		d.fail(w, r, http.StatusForbidden, sentence(role))
	case operate.Refused(err):
		d.fail(w, r, http.StatusForbidden, "This user lacks the permission to do that with the queue. Ask for it, or log in as another user.")
	case operate.Gone(err):
		d.fail(w, r, http.StatusNotFound, gone(r.FormValue("name"), r.FormValue("vhost")))
	default:
		d.fail(w, r, http.StatusBadRequest, err.Error())
	}
}

// gone says that what a page was asked for is not there.
func gone(name, vhost string) string {
	what := "It"
	switch {
	case name != "" && vhost != "":
		what = fmt.Sprintf("%q of the virtual host %q", name, vhost)
	case name != "":
		what = fmt.Sprintf("%q", name)
	}
	return what + " no longer exists, or it has changed. Reload the page, or choose another one from the list in the menu."
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
		p.d.log.Error("render", zap.String("page", p.title), zap.Error(err))
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
		Title: p.title, Tab: p.tab, Instance: p.d.Instance, Version: p.d.Version,
		User: v.User, Token: v.Token, Basic: v.Basic, Here: r.URL.RequestURI(), Theme: themeOf(r), Said: said[r.URL.Query().Get("said")],
	}
	if p.live {
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

// fail answers with a page that explains an error.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	v, err := d.visitor(r)
	if err != nil {
		v = ui.Visitor{}
	}
	d.pages["/failed"].write(w, r, status, v, failure{status, text})
}

// answers is the dashboard as groups of pages use it.
type answers struct{ d *Dashboard }

func (s answers) Show(w http.ResponseWriter, r *http.Request, status int, v ui.Visitor, path string, content ui.View) {
	s.d.pages[path].write(w, r, status, v, content)
}

func (s answers) Fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	s.d.fail(w, r, status, text)
}

func (s answers) Refuse(w http.ResponseWriter, r *http.Request, err error) { s.d.refuse(w, r, err) }

func (s answers) FromHere(w http.ResponseWriter, r *http.Request, v ui.Visitor, token string) bool {
	return s.d.fromHere(w, r, v, token)
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
}

func (f failure) Draw(*ui.Info) ui.Drawing {
	heading := map[int]string{http.StatusNotFound: "Not here", http.StatusForbidden: "Not allowed"}[f.status]
	return ui.Drawing{Live: h.Section(h.Class("card empty"), h.Role("alert"),
		h.H1(g.Text(cmp.Or(heading, "Something went wrong"))),
		h.P(ui.Name(f.text)),
		h.P(ui.Link("/", g.Text("Back to the overview"))))}
}
