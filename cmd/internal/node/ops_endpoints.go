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
	mu          sync.Mutex
	metrics     http.Handler // answers on /metrics
	phase       phase
	judge       func() health // nil: there is nothing to judge yet
	ttlOff      bool
	connections *connLimit
}

func newOpsEndpoints(metrics prometheus.Gatherer) *opsEndpoints {
	own := http.NewServeMux()
	own.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	most, _ := openFiles()
	return &opsEndpoints{metrics: own, phase: starting, connections: newConnLimit("ops", most.ops)}
}

// watch has health say what judge does, which may be called from any goroutine. ttlOff says that no message expires.
func (o *opsEndpoints) watch(judge func() health, ttlOff bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.judge, o.ttlOff = judge, ttlOff
}

func (o *opsEndpoints) enter(p phase) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase = p
}

const opsTimeout = 10 * time.Second

func (o *opsEndpoints) server() *http.Server {
	return o.connections.applyTo(&http.Server{
		Handler:           o.handler(),
		ReadHeaderTimeout: opsTimeout,
		ReadTimeout:       opsTimeout,
		WriteTimeout:      3 * opsTimeout,
		IdleTimeout:       6 * opsTimeout,
		MaxHeaderBytes:    webHeaderBytes,
	})
}

func (o *opsEndpoints) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", o.scrape)
	mux.HandleFunc("GET /metrics/", o.scrape)
	mux.HandleFunc("GET /healthz", o.healthz)
	mux.HandleFunc("GET /readyz", o.readyz)
	return mux
}

// showMetrics makes handler serve /metrics and the paths below it. Until then they have only the
// process's own metrics.
func (o *opsEndpoints) showMetrics(handler http.Handler) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.metrics = handler
}

func (o *opsEndpoints) scrape(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	handler := o.metrics
	o.mu.Unlock()
	handler.ServeHTTP(w, r)
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
	o.mu.Lock()
	phase, judge, ttlOff := o.phase, o.judge, o.ttlOff
	o.mu.Unlock()
	h.Status, h.seen = string(incident.OK), &incident.View{}
	if judge != nil {
		h = judge()
	}
	if h.Phase = phase; ttlOff {
		h.Parts.TTL = "off: no message expires (CURFEW_TTL=off)"
	}
	return h
}

// readyz answers 200 from the end of recovery until the stop begins.
func (o *opsEndpoints) readyz(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	p := o.phase
	o.mu.Unlock()
	code := http.StatusOK
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
