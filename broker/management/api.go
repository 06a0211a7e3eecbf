package management

import (
	"crypto/rand"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/server"
)

// Options configure an API. Broker and Server are required.
type Options struct {
	Broker *broker.Broker
	Server *server.Server

	// Node and Cluster are shown as the node's and the cluster's name.
	Node, Cluster string
	// Version is Curfew's own. Compat is the version of RabbitMQ that tools are told,
	// since they decide by it what to ask; default "4.1.0".
	Version, Compat string
	// Listeners are the sockets that are open.
	Listeners []Listener
	Started   time.Time // of the process; zero: when New was called
	// DataDir is where messages are kept; "" memory only.
	DataDir       string
	DiskFreeLimit int64 // bytes
	// CertificateFile is the PEM file of the TLS listeners; "" none.
	CertificateFile string
	// Replays of dead letters; nil: there are none.
	Replays *deadletters.Runs
	Log     *zap.Logger
	// Now is the clock for rates; nil: time.Now.
	Now func() time.Time
}

// Listener is one open socket.
type Listener struct {
	Protocol string // amqp, amqp/ssl, http, https, http/prometheus
	Address  string
	Port     int
	TLS      bool
}

// defaultCompat is new enough for NServiceBus and old enough for the v1 tools.
const defaultCompat = "4.1.0"

// API answers management requests. Safe for concurrent use.
type API struct {
	Options
	b     *broker.Broker
	log   *zap.Logger
	rates rates
	turns chan struct{} // of those who make long answers
	long  chan struct{} // of the one whose body takes more than it pays for
	// attempts are the totals when the counts of logins were reset last; nil: never.
	attempts atomic.Pointer[server.Totals]
	router
}

// New makes an API; Handler serves it.
func New(o Options) *API {
	if o.Compat == "" {
		o.Compat = defaultCompat
	}
	if o.Cluster == "" {
		o.Cluster = o.Node
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Started.IsZero() {
		o.Started = o.Now()
	}
	a := &API{Options: o, b: o.Broker, log: o.Log.Named("management"), turns: make(chan struct{}, turns), long: make(chan struct{}, 1)}
	a.rates.init(a)
	a.router.init(a.routes())
	a.identify()
	return a
}

// identify gives the broker the ID that RabbitMQ gives a cluster at its first start.
func (a *API) identify() {
	if _, there := a.b.GlobalParameters()[clusterID]; there {
		return
	}
	if _, err := a.b.SetGlobalParameter(clusterID, "rabbitmq-cluster-id-"+rand.Text()); err != nil {
		a.log.Warn("the cluster's ID is not saved; the next start makes another", zap.Error(err))
	}
}

// Handler serves /api. Requests are refused that a browser sends on behalf of
// another site (http.CrossOriginProtection); no answer allows one to be read there.
func (a *API) Handler() http.Handler {
	mux := chi.NewRouter()
	for _, path := range a.router.paths {
		mux.HandleFunc(path, a.serve(path))
	}
	mux.NotFound(func(w http.ResponseWriter, _ *http.Request) { answerError(w, errNotFound) })
	return secured(http.NewCrossOriginProtection().Handler(withoutSlash(mux)))
}

// The bounds of a request (the listener's timeouts are the command's).
const (
	maxBody        = 1 << 20
	maxPublish     = 192 << 20 // base64 of the largest body there may be
	maxDefinitions = 10 << 20
)

// secured sets the headers every answer has.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		h.Set("Vary", "accept, accept-encoding, origin")
		next.ServeHTTP(w, r)
	})
}

// withoutSlash lets "/api/users/" mean "/api/users": clients send both.
func withoutSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cut := func(p string) string {
			for len(p) > 1 && p[len(p)-1] == '/' {
				p = p[:len(p)-1]
			}
			return p
		}
		u := *r.URL
		if u.RawPath != "" { // "%2F" at the end is a name, not a slash
			u.RawPath = cut(u.RawPath)
		} else {
			u.Path = cut(u.Path)
		}
		inner := *r
		inner.URL = &u
		next.ServeHTTP(w, &inner)
	})
}
