package dashboard

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"net/http"

	"go.uber.org/zap"
)

//go:embed pages/*.html
var pageFiles embed.FS

// page is one page: a template with the parts "top", which stays as it is, and "live",
// which follows what happens.
type page struct {
	d        *Dashboard
	title    string
	tab      string // the entry of the menu it belongs to
	live     bool
	template *template.Template
	// build gathers what the template shows; nil: others do.
	build func(r *http.Request, v visitor) (any, error)
}

// shown is what templates get.
type shown struct {
	Title, Tab        string
	Instance, Version string
	User              User
	Token             string
	Basic             bool
	DeadLetters       bool   // there is a page of them
	Live              string // where events of the live part come from; "" nowhere
	Here              string // path and query
	Page              any
}

// loadPages makes all pages, by path.
func (d *Dashboard) loadPages() (map[string]*page, error) {
	pages := map[string]*page{
		"/":       {title: "Overview", tab: "/", live: true, build: d.overview},
		"/queues": {title: "Queues", tab: "/queues", live: true, build: d.queues},
		"/queue":  {title: "Queue", tab: "/queues", live: true, build: d.queue},
		"/alerts": {title: "Alerts", tab: "/alerts", live: true, build: d.alerts},
		"/audit":  {title: "Audit", tab: "/audit", build: d.audit},
		"/login":  {title: "Log in"},
		"/failed": {title: "That did not work"},
	}
	if d.DeadLetters != nil {
		pages["/dead-letters"] = &page{title: "Dead letters", tab: "/dead-letters", live: true, build: d.deadLetters}
		pages["/dead-letter"] = &page{title: "Dead letters", tab: "/dead-letters", build: d.letters}
		pages["/replay"] = &page{title: "Replay", tab: "/dead-letters"}
	}
	for path, p := range pages {
		name := path[1:]
		if name == "" {
			name = "overview"
		}
		t, err := template.New("layout.html").Funcs(d.functions()).ParseFS(pageFiles, "pages/layout.html", "pages/"+name+".html")
		if err != nil {
			return nil, err
		}
		p.d, p.template = d, t
	}
	return pages, nil
}

// serve answers with the page.
func (p *page) serve(w http.ResponseWriter, r *http.Request, v visitor) {
	content, err := p.build(r, v)
	switch {
	case errors.Is(err, ErrGone):
		p.d.fail(w, r, http.StatusNotFound, "It is not there any more: it was deleted, or never was.")
	case errors.Is(err, ErrForbidden):
		p.d.fail(w, r, http.StatusForbidden, "This user may not read that queue: ask for the permission, or log in as another.")
	case err != nil:
		p.d.fail(w, r, http.StatusBadRequest, err.Error())
	default:
		p.write(w, r, http.StatusOK, v, content)
	}
}

// write answers with the template filled in.
func (p *page) write(w http.ResponseWriter, r *http.Request, status int, v visitor, content any) {
	text, err := p.render("layout.html", r, v, content)
	if err != nil {
		p.d.log.Error("render", zap.String("page", p.title), zap.Error(err))
		http.Error(w, "the page could not be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a peer that is gone needs no answer
}

func (p *page) render(part string, r *http.Request, v visitor, content any) ([]byte, error) {
	s := shown{
		Title: p.title, Tab: p.tab, Instance: p.d.Instance, Version: p.d.Version,
		User: v.User, Token: v.token, Basic: v.basic, Here: r.URL.RequestURI(), Page: content,
		DeadLetters: p.d.DeadLetters != nil,
	}
	if p.live {
		s.Live = "/live" + r.URL.RequestURI()
	}
	var b bytes.Buffer
	err := p.template.ExecuteTemplate(&b, part, &s)
	return b.Bytes(), err
}

// fail answers with a page that says what did not work.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	v, err := d.visitor(r)
	if err != nil {
		v = visitor{}
	}
	d.pages["/failed"].write(w, r, status, v, text)
}
