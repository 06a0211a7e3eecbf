package rest

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/operate"
)

// Options of a Server. Broker and Operations are required.
type Options struct {
	Broker     *broker.Broker // whose users may send requests
	Operations *operate.Operations
	Log        *zap.Logger // nil: none
}

// Server answers the requests of a table of routes. Safe for concurrent use.
type Server struct {
	Options
	Turns Turns
	// Logins counts the requests with credentials, by whether they are right.
	Logins broker.LoginCount
	long   chan struct{} // held by the one request whose body takes more than half of the budget

	paths   []string // in the order of the table
	methods map[string]map[string]Route
}

// New makes the server of a table.
func New(o Options, table []Route) *Server {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	s := &Server{Options: o, Turns: make(Turns, turns), long: make(chan struct{}, 1), methods: map[string]map[string]Route{}}
	for _, one := range table {
		if s.methods[one.Path] == nil {
			s.paths = append(s.paths, one.Path)
			s.methods[one.Path] = map[string]Route{}
		}
		s.methods[one.Path][one.Method] = one
	}
	return s
}

// Handler serves the routes. It refuses requests that a browser sends on behalf of another site (http.CrossOriginProtection); no answer lets
// another site read it.
func (s *Server) Handler() http.Handler {
	mux := chi.NewRouter()
	for _, path := range s.paths {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.serve(path, w, r) })
	}
	mux.NotFound(func(w http.ResponseWriter, _ *http.Request) { answerError(w, ErrNotFound) })
	return secured(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, withoutSlash(r)) })
}

// Guard puts another package's handler behind the same checks as the routes: read is the route for GET and HEAD, change the one for all other
// methods.
func (s *Server) Guard(read, change *Route) http.Handler {
	return secured(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			s.answer(read, w, r)
		} else {
			s.answer(change, w, r)
		}
	})
}

// MaxBody is the longest body of a request if its route does not set another limit, in bytes.
const MaxBody = 1 << 20

// secured sets the headers that every answer has, and refuses requests that a browser sends on behalf of another site.
func secured(next http.HandlerFunc) http.Handler {
	asked := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		h.Set("Vary", "accept, accept-encoding, origin")
		asked.ServeHTTP(w, r)
	})
}

// withoutSlash lets "/api/users/" mean "/api/users": clients send both.
func withoutSlash(r *http.Request) *http.Request {
	inner, u := *r, *r.URL
	path := &u.Path
	if u.RawPath != "" { // "%2F" at the end is a name, not a slash
		path = &u.RawPath
	}
	for len(*path) > 1 && strings.HasSuffix(*path, "/") {
		*path = (*path)[:len(*path)-1]
	}
	inner.URL = &u
	return &inner
}

// turns is the number of long answers that are made at a time.
const turns = 2

// Turns bounds how many long answers are made at a time.
type Turns chan struct{}

// Take waits until this answer may be made.
func (t Turns) Take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End gives the turn to the next.
func (t Turns) End() { <-t }
