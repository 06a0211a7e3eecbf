package node

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"curfew/monitor"
	"curfew/monitor/incident"
)

// phase is the stage of the process's life.
type phase string

const (
	starting phase = "starting"
	ready    phase = "ready"
	stopping phase = "stopping"
)

// opsEndpoints serves /metrics, /healthz and /readyz over HTTP. It needs no credentials and shows no message
// data. Safe for concurrent use.
type opsEndpoints struct {
	connections *connLimit
	mu          sync.Mutex
	served      served
}

// served is what the endpoints go by now.
type served struct {
	metrics http.Handler // answers on /metrics and the paths below it
	phase   phase
	judge   func() health // may be called from any goroutine; nil: there is nothing to judge yet
	ttlOff  bool          // no message expires
}

func newOpsEndpoints(metrics prometheus.Gatherer) *opsEndpoints {
	own := http.NewServeMux()
	own.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	most, _ := openFiles()
	return &opsEndpoints{served: served{metrics: own, phase: starting}, connections: newConnLimit("ops", most.ops)}
}

// change changes what the endpoints go by.
func (o *opsEndpoints) change(change func(*served)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.served)
}

func (o *opsEndpoints) enter(p phase) { o.change(func(s *served) { s.phase = p }) }

func (o *opsEndpoints) now() (is served) {
	o.change(func(s *served) { is = *s })
	return is
}

const opsTimeout = 10 * time.Second

func (o *opsEndpoints) server() *http.Server {
	return &http.Server{
		Handler:           o.handler(),
		ConnState:         o.connections.state,
		ReadHeaderTimeout: opsTimeout,
		ReadTimeout:       opsTimeout,
		WriteTimeout:      3 * opsTimeout,
		IdleTimeout:       6 * opsTimeout,
		MaxHeaderBytes:    webHeaderBytes,
	}
}

func (o *opsEndpoints) handler() http.Handler {
	mux := http.NewServeMux()
	scrape := func(w http.ResponseWriter, r *http.Request) { o.now().metrics.ServeHTTP(w, r) }
	mux.HandleFunc("GET /metrics", scrape)
	mux.HandleFunc("GET /metrics/", scrape)
	mux.HandleFunc("GET /healthz", o.healthz)
	mux.HandleFunc("GET /readyz", o.readyz)
	return mux
}

// health is the body of /healthz.
type health struct {
	Status   string      `json:"status"` // ok, degraded, critical, dead
	Phase    phase       `json:"phase"`
	LookedAt time.Time   `json:"looked_at,omitzero"` // when the incidents were found
	Reasons  []string    `json:"reasons,omitempty"`
	Parts    healthParts `json:"parts"`

	seen *incident.View // what was found then
}

type healthParts struct {
	Incidents openIncidents   `json:"incidents"`
	Monitor   *monitor.Health `json:"monitor,omitempty"`
	TTL       string          `json:"ttl,omitempty"`
}

// healthz answers 503 only if a restart would help: a degraded service is still a service.
func (o *opsEndpoints) healthz(w http.ResponseWriter, _ *http.Request) {
	h := o.health()
	code := http.StatusOK
	if h.Status == "dead" {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, h)
}

func (o *opsEndpoints) health() (h health) {
	is := o.now()
	h.Status, h.seen = string(incident.OK), &incident.View{}
	if is.judge != nil {
		h = is.judge()
	}
	if h.Phase = is.phase; is.ttlOff {
		h.Parts.TTL = "off: no message expires (CURFEW_TTL=off)"
	}
	return h
}

// readyz answers 200 from the end of recovery until the stop begins.
func (o *opsEndpoints) readyz(w http.ResponseWriter, _ *http.Request) {
	p, code := o.now().phase, http.StatusOK
	if p != ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, map[string]phase{"status": p})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // it fails only if the client is gone
}
