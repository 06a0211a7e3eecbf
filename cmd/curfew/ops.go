package main

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

// phase is where the process is in its life.
type phase string

const (
	starting phase = "starting"
	ready    phase = "ready"
	stopping phase = "stopping"
)

// vitals is what one part says of itself.
type vitals struct {
	Dead    bool     // it will not recover without a restart
	Reasons []string // why it is degraded or dead, for an operator
	Detail  any      // shown as JSON; nil for nothing
}

// ops answers the questions of operators' machines over HTTP: /metrics, /healthz, /readyz. It needs no
// credentials and shows no message data. Safe for concurrent use.
type ops struct {
	mu      sync.Mutex
	scraped http.Handler // answers on /metrics
	phase   phase
	parts   map[string]func() vitals
	crowd   *crowd
}

func newOps(metrics prometheus.Gatherer) *ops {
	own := http.NewServeMux()
	own.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	most, _ := openFiles()
	return &ops{scraped: own, phase: starting, parts: make(map[string]func() vitals), crowd: newCrowd("ops", most.ops)}
}

// watch makes a part's vitals count from now on. check is called from any goroutine.
func (o *ops) watch(name string, check func() vitals) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parts[name] = check
}

func (o *ops) enter(p phase) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase = p
}

const opsTimeout = 10 * time.Second

func (o *ops) server() *http.Server {
	return o.crowd.bound(&http.Server{
		Handler:           o.handler(),
		ReadHeaderTimeout: opsTimeout,
		ReadTimeout:       opsTimeout,
		WriteTimeout:      3 * opsTimeout,
		IdleTimeout:       6 * opsTimeout,
		MaxHeaderBytes:    webHeaderBytes,
	})
}

// start serves in the background; stop ends that and waits for it.
func (o *ops) start(ctx context.Context, l net.Listener, log *zap.Logger) (stop func()) {
	return background(ctx, o.server(), l, func(err error) {
		log.Error("metrics and health are not served any more", zap.Error(err))
	})
}

func (o *ops) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", o.scrape)
	mux.HandleFunc("GET /metrics/", o.scrape)
	mux.HandleFunc("GET /healthz", o.healthz)
	mux.HandleFunc("GET /readyz", o.readyz)
	return mux
}

// showMetrics has handler answer on /metrics and below from now on; before, there are only the
// process's own metrics.
func (o *ops) showMetrics(handler http.Handler) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scraped = handler
}

func (o *ops) scrape(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	handler := o.scraped
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

// healthz is 503 only when a restart is the cure; degraded service is still service.
func (o *ops) healthz(w http.ResponseWriter, _ *http.Request) {
	h := o.health()
	code := http.StatusOK
	if h.Status == "dead" {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, h)
}

func (o *ops) health() health {
	o.mu.Lock()
	h := health{Status: "ok", Phase: o.phase, Parts: make(map[string]any)}
	checks := maps.Clone(o.parts)
	o.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		h.add(name, checks[name]())
	}
	return h
}

// alive is false when a restart is the cure.
func (o *ops) alive() bool { return o.health().Status != "dead" }

func (h *health) add(name string, v vitals) {
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

// readyz is 200 while clients are welcome: after recovery, until the stop begins.
func (o *ops) readyz(w http.ResponseWriter, _ *http.Request) {
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
	_ = json.NewEncoder(w).Encode(body) // a peer that is gone needs no answer
}
