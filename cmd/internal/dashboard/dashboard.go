package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/letters"
	"curfew/cmd/internal/dashboard/internal/overview"
	"curfew/cmd/internal/dashboard/internal/topology"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/audit"
	"curfew/monitor/changes"
	"curfew/monitor/history"
	"curfew/monitor/incident"
)

// Options of a Dashboard. Users, Changes and Incidents are required.
type Options struct {
	Users   Users
	Changes *changes.Changes
	// Operations of the bundled broker; nil: there is none, and there are no pages of queues, messages and dead letters.
	Operations        *operate.Operations
	Monitor           Monitor // nil: deadlines are not watched
	Incidents         *incident.Incidents
	Audit             *audit.Log       // nil: expiries are not recorded
	History           *history.History // nil: none
	RabbitMQ          RabbitMQ         // nil: none; not together with Operations
	Instance, Version string
	// AMQP is where clients connect: the port, and the address unless it is every address; nil: there is no broker.
	AMQP *net.TCPAddr
	Log  *zap.Logger
	// Every is how often live parts are updated; 0: 2 s.
	Every time.Duration
}

// Dashboard serves the pages. Create it with New.
type Dashboard struct {
	Options
	log      *zap.Logger
	assets   ui.Assets
	groups   []ui.Group
	pages    map[string]ui.Page
	sessions *sessions
	streams  chan struct{} // a place for each
	started  time.Time
	ended    chan struct{}
	// Close ends the streams, so that a server does not wait for them. It may be called more than once.
	Close func()
}

const (
	liveEvery  = 2 * time.Second
	maxStreams = 64
)

// New returns a dashboard. It fails if o is incomplete.
func New(o Options) (*Dashboard, error) {
	if o.Users == nil || o.Changes == nil || o.Incidents == nil {
		return nil, errors.New("dashboard: Options.Users, Options.Changes or Options.Incidents is missing")
	}
	o.Every = cmp.Or(o.Every, liveEvery)
	o.Log = cmp.Or(o.Log, zap.NewNop())
	d := &Dashboard{Options: o, log: o.Log.Named("dashboard"), streams: make(chan struct{}, maxStreams), ended: make(chan struct{}), started: time.Now()}
	d.Close = sync.OnceFunc(func() { close(d.ended) })
	var err error
	if d.assets, err = ui.LoadAssets(); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	first := &overview.Pages{
		State: d.state, Operations: o.Operations, Monitor: o.Monitor, Incidents: o.Incidents, Changes: o.Changes, Site: d, History: o.History, Audited: o.Audit != nil,
		AMQP: o.AMQP, Remote: o.RabbitMQ != nil,
	}
	d.groups = []ui.Group{first.Group()}
	if o.Operations != nil {
		d.groups = append(d.groups, letters.Pages{Operations: o.Operations, Forecast: d.forecast, Site: d, Log: d.log}.Group(),
			topology.Pages{Operations: o.Operations, Site: d}.Group())
	}
	d.pages, d.sessions = d.makePages(), newSessions()
	return d, nil
}

// Handler serves all paths of the dashboard.
func (d *Dashboard) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{name}", d.assets)
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { d.showLogin(w, r, http.StatusOK, ui.NewForm(nil)) })
	mux.HandleFunc("POST /login", d.login)
	mux.HandleFunc("POST /logout", d.logout)
	mux.HandleFunc("POST /theme", chooseTheme)
	for path, p := range d.pages {
		if p.Build == nil {
			continue
		}
		mux.Handle("GET "+exact(path), d.known(func(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
			content, err := p.Build(r, v)
			if err != nil {
				d.Refuse(w, r, err)
				return
			}
			d.Show(w, r, http.StatusOK, v, path, content)
		}))
		if p.Live {
			mux.Handle("GET /live"+exact(path), d.known(func(w http.ResponseWriter, r *http.Request, v ui.Visitor) { d.stream(w, r, v, &p) }))
		}
	}
	if d.Audit != nil {
		export := d.Audit.Handler()
		mux.Handle("GET /audit/export", d.known(func(w http.ResponseWriter, r *http.Request, _ ui.Visitor) { export.ServeHTTP(w, r) }))
	}
	for _, group := range d.groups {
		for path, change := range group.Changes {
			mux.Handle("POST "+path, d.changes(change))
		}
		for path, upload := range group.Uploads {
			mux.Handle("POST "+path, d.known(upload))
		}
		for path, file := range group.Files {
			mux.Handle("GET "+path, d.known(file))
		}
	}
	if d.RabbitMQ != nil {
		for _, path := range []string{"GET /queue", "GET /queues"} { // where the names of queues lead
			mux.Handle(path, http.RedirectHandler("/rabbitmq", http.StatusSeeOther))
		}
	}
	mux.Handle("GET "+findPath, d.known(d.find))
	mux.Handle("/", d.known(func(w http.ResponseWriter, r *http.Request, _ ui.Visitor) {
		d.Fail(w, r, http.StatusNotFound, "There is no such page.")
	}))
	return secured(http.NewCrossOriginProtection().Handler(mux))
}

// exact is a pattern for a path without the paths below it.
func exact(path string) string {
	if path == "/" {
		return "/{$}"
	}
	return path
}
