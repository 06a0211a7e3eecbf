package dashboard

import (
	"bytes"
	"errors"
	"net/http"

	"go.uber.org/zap"
	g "maragu.dev/gomponents"
)

// page is one page.
type page struct {
	d     *Dashboard
	title string
	tab   string // the entry of the menu it belongs to
	live  bool   // part of it follows what happens
	// build gathers what the page shows; nil: others do.
	build func(r *http.Request, v visitor) (view, error)
}

// view is what a page shows, gathered and ready to be drawn.
type view interface{ draw(s *shown) drawing }

// drawing is what stands on a page: live follows what happens, what is above and below it
// stays as it is. A part may be nil.
type drawing struct{ top, live, bottom g.Node }

// shown is what pages show besides what they are about.
type shown struct {
	Title, Tab        string
	Instance, Version string
	User              User
	Token             string
	Basic             bool
	DeadLetters       bool   // there is a page of them
	Live              string // where events of the live part come from; "" nowhere
	Here              string // path and query
}

// makePages returns all pages, by path.
func (d *Dashboard) makePages() map[string]*page {
	pages := map[string]*page{
		"/":              {title: "Overview", tab: "/", live: true, build: d.overview},
		"/queues":        {title: "Queues", tab: "/queues", live: true, build: d.queues},
		"/queue":         {title: "Queue", tab: "/queues", live: true, build: d.queue},
		"/alerts":        {title: "Alerts", tab: "/alerts", live: true, build: d.alerts},
		"/audit":         {title: "Audit", tab: "/audit", build: d.audit},
		"/login":         {title: "Log in"},
		"/deadline":      {title: "Deadline", tab: "/queues", build: d.deadline},
		"/deadline-plan": {title: "Deadline", tab: "/queues"},
		"/failed":        {title: "That did not work"},
	}
	if d.DeadLetters != nil {
		pages["/dead-letters"] = &page{title: "Dead letters", tab: "/dead-letters", live: true, build: d.deadLetters}
		pages["/dead-letter"] = &page{title: "Dead letters", tab: "/dead-letters", build: d.letters}
		pages[editPath] = &page{title: "Change", tab: "/dead-letters", build: d.edit}
		pages["/purge"] = &page{title: "Delete", tab: "/dead-letters"}
		pages["/replay"] = &page{title: "Replay", tab: "/dead-letters"}
	}
	for _, p := range pages {
		p.d = d
	}
	return pages
}

// serve answers with the page.
func (p *page) serve(w http.ResponseWriter, r *http.Request, v visitor) {
	content, err := p.build(r, v)
	if err != nil {
		p.d.refuse(w, r, err)
		return
	}
	p.write(w, r, http.StatusOK, v, content)
}

// refuse answers with a page that says what was wrong.
func (d *Dashboard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, ErrGone):
		d.fail(w, r, http.StatusNotFound, "It is not there any more, or was changed meanwhile: look again.")
	case errors.Is(err, ErrForbidden):
		d.fail(w, r, http.StatusForbidden, "This user lacks the permission to do that with the queue: ask for it, or log in as another.")
	default:
		d.fail(w, r, http.StatusBadRequest, err.Error())
	}
}

// write answers with the whole page.
func (p *page) write(w http.ResponseWriter, r *http.Request, status int, v visitor, content view) {
	s := p.shown(r, v)
	text, err := markup(p.d.layout(s, content.draw(s)))
	if err != nil {
		p.d.log.Error("render", zap.String("page", p.title), zap.Error(err))
		http.Error(w, "the page could not be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a peer that is gone needs no answer
}

func (p *page) shown(r *http.Request, v visitor) *shown {
	s := &shown{
		Title: p.title, Tab: p.tab, Instance: p.d.Instance, Version: p.d.Version,
		User: v.User, Token: v.token, Basic: v.basic, Here: r.URL.RequestURI(),
		DeadLetters: p.d.DeadLetters != nil,
	}
	if p.live {
		s.Live = "/live" + r.URL.RequestURI()
	}
	return s
}

// markup is HTML of a node; of nil it is empty.
func markup(n g.Node) ([]byte, error) {
	if n == nil {
		return nil, nil
	}
	var b bytes.Buffer
	err := n.Render(&b)
	return b.Bytes(), err
}

// fail answers with a page that says what did not work.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	v, err := d.visitor(r)
	if err != nil {
		v = visitor{}
	}
	d.pages["/failed"].write(w, r, status, v, failure(text))
}
