package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/monitor/alert"
	"curfew/monitor/audit"
)

// Options of a Dashboard. Broker is required.
type Options struct {
	Broker  Broker
	Monitor Monitor       // nil: deadlines are not watched
	Alerts  *alert.Alerts // nil: none
	Audit   *audit.Log    // nil: expiries are not recorded
	// DeadLetters; nil: there is no page of them.
	DeadLetters       DeadLetters
	Instance, Version string
	Log               *zap.Logger
	// Every is how often live parts are looked at; 0: 2 s.
	Every time.Duration
}

// Dashboard serves the pages. Create it with New.
type Dashboard struct {
	Options
	log      *zap.Logger
	assets   assets
	pages    map[string]*page
	sessions sessions
	rates    rates
	streams  chan struct{} // a place for each
	ended    chan struct{}
	end      sync.Once
}

const (
	liveEvery  = 2 * time.Second
	maxStreams = 64
)

// New returns a dashboard that nothing has asked yet. It fails if o is incomplete.
func New(o Options) (*Dashboard, error) {
	if o.Broker == nil {
		return nil, errors.New("dashboard: Options.Broker is missing")
	}
	o.Every = cmp.Or(o.Every, liveEvery)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	d := &Dashboard{Options: o, log: o.Log.Named("dashboard"), streams: make(chan struct{}, maxStreams), ended: make(chan struct{})}
	d.sessions.init()
	var err error
	if d.assets, err = loadAssets(); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	d.pages = d.makePages()
	return d, nil
}

// Close ends the streams, so that a server need not wait for them. It may be called more
// than once.
func (d *Dashboard) Close() { d.end.Do(func() { close(d.ended) }) }

// Handler serves all paths of the dashboard.
func (d *Dashboard) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{name}", d.assets)
	mux.HandleFunc("GET /login", d.showLogin)
	mux.HandleFunc("POST /login", d.login)
	mux.HandleFunc("POST /logout", d.logout)
	for path, p := range d.pages {
		if p.build == nil {
			continue
		}
		mux.Handle("GET "+exact(path), d.known(p.serve))
		if p.live {
			mux.Handle("GET /live"+exact(path), d.known(p.stream))
		}
	}
	if d.Audit != nil {
		export := d.Audit.Handler()
		mux.Handle("GET /audit/export", d.known(func(w http.ResponseWriter, r *http.Request, _ visitor) { export.ServeHTTP(w, r) }))
	}
	mux.Handle("POST /deadline", d.changes(d.changeDeadline))
	mux.Handle("POST /silences", d.changes(d.mute))
	mux.Handle("POST /silences/end", d.changes(d.unmute))
	if d.DeadLetters != nil {
		mux.Handle("GET /dead-letters/export", d.known(d.exportLetters))
		mux.Handle("POST "+importPath, d.known(d.importLetters))
		mux.Handle("POST "+editPath, d.changes(d.resend))
		mux.Handle("POST /dead-letters/purge", d.changes(d.purge))
		mux.Handle("POST /dead-letters/replay", d.changes(d.replay))
		mux.Handle("POST /dead-letters/cancel", d.known(d.cancelReplay))
	}
	mux.Handle("/", d.known(func(w http.ResponseWriter, r *http.Request, _ visitor) {
		d.fail(w, r, http.StatusNotFound, "There is no such page.")
	}))
	return secured(http.NewCrossOriginProtection().Handler(mux))
}

// exact is a pattern for a path and none below it.
func exact(path string) string {
	if path == "/" {
		return "/{$}"
	}
	return path
}
