package node

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// phase is the stage of the process's life.
type phase string

const (
	starting phase = "starting"
	ready    phase = "ready"
	stopping phase = "stopping"
)

// healthReport is the state that one part reports.
type healthReport struct {
	Dead    bool     // it will not recover without a restart
	Reasons []string // why it is degraded or dead, for an operator
	Detail  any      // printed as JSON; nil: none
}

// opsEndpoints serves /metrics, /healthz and /readyz over HTTP. It needs no credentials and shows no message
// data. Safe for concurrent use.
type opsEndpoints struct {
	mu          sync.Mutex
	metrics     http.Handler // answers on /metrics
	phase       phase
	parts       map[string]func() healthReport
	connections *connLimit
}

func newOpsEndpoints(metrics prometheus.Gatherer) *opsEndpoints {
	own := http.NewServeMux()
	own.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	most, _ := openFiles()
	return &opsEndpoints{metrics: own, phase: starting, parts: make(map[string]func() healthReport), connections: newConnLimit("ops", most.ops)}
}

// watch adds a part to the health. check may be called from any goroutine.
func (o *opsEndpoints) watch(name string, check func() healthReport) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts[name] = check
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

// start serves in the background until stop is called, which waits for the end.
func (o *opsEndpoints) start(ctx context.Context, l net.Listener, log *zap.Logger) (stop func()) {
	return background(ctx, o.server(), l, func(err error) {
		log.Error("metrics and health are no longer served", zap.Error(err))
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
	Status  string         `json:"status"` // ok, degraded, dead
	Phase   phase          `json:"phase"`
	Reasons []string       `json:"reasons,omitempty"`
	Parts   map[string]any `json:"parts,omitempty"`
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

func (o *opsEndpoints) health() health {
	o.mu.Lock()
	h := health{Status: "ok", Phase: o.phase, Parts: make(map[string]any)}
	checks := maps.Clone(o.parts)
	o.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		h.add(name, checks[name]())
	}
	return h
}

// alive reports whether the process can go on: a restart would not help.
func (o *opsEndpoints) alive() bool { return o.health().Status != "dead" }

func (h *health) add(name string, v healthReport) {
	if v.Detail != nil {
		h.Parts[name] = v.Detail
	}
	for _, reason := range v.Reasons {
		h.Reasons = append(h.Reasons, name+": "+reason)
	}
	switch {
	case v.Dead:
		h.Status = "dead"
	case len(v.Reasons) > 0 && h.Status == "ok":
		h.Status = "degraded"
	}
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
