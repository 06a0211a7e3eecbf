package node

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/cli"
	"curfew/monitor"
)

func get(t *testing.T, o *opsEndpoints, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	o.handler().ServeHTTP(w, r)
	return w
}

func TestReadyOnlyWhileServing(t *testing.T) {
	o := newOpsEndpoints(prometheus.NewRegistry())
	for _, c := range []struct {
		phase phase
		code  int
	}{{starting, 503}, {ready, 200}, {stopping, 503}} {
		o.enter(c.phase)
		w := get(t, o, "/readyz")
		assert.Equal(t, c.code, w.Code)
		assert.JSONEq(t, `{"status":"`+string(c.phase)+`"}`, w.Body.String())
	}
}

// TestHealthIsTheVerdict: with its reasons. Only what a restart helps against is not healthy to who watches the process.
func TestHealthIsTheVerdict(t *testing.T) {
	for _, c := range []struct {
		name   string
		judged *health
		code   int
		status string
	}{
		{"nothing yet", nil, 200, "ok"},
		{"ok", &health{Status: "ok", Parts: healthParts{Monitor: &monitor.Health{Pending: 3}}}, 200, "ok"},
		{"degraded", &health{Status: "degraded", Reasons: []string{"Redis is away"}}, 200, "degraded"},
		{"critical", &health{Status: "critical", Reasons: []string{"dead letters are parked"}}, 200, "critical"},
		{"dead", &health{Status: "dead", Reasons: []string{"no tick for 20 s"}}, 503, "dead"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOpsEndpoints(prometheus.NewRegistry())
			var want []string
			if c.judged != nil {
				want = c.judged.Reasons
				o.change(func(s *served) { s.judge = func() health { return *c.judged } })
			}
			w := get(t, o, "/healthz")
			assert.Equal(t, c.code, w.Code)
			assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
			var h health
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &h))
			assert.Equal(t, c.status, h.Status)
			assert.Equal(t, want, h.Reasons)
			assert.Equal(t, c.code == 200, o.health().Status != "dead")
		})
	}
}

func TestMetricsSpeakOpenMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{100}})
	registry.MustRegister(h)
	o := newOpsEndpoints(registry)
	assert.Contains(t, get(t, o, "/metrics").Body.String(), `h_bucket{le="100"} 0`)
	w := get(t, o, "/metrics", "Accept", "application/openmetrics-text; version=1.0.0")
	assert.Contains(t, w.Body.String(), `h_bucket{le="100.0"} 0`)
	assert.Contains(t, w.Header().Get("Content-Type"), "application/openmetrics-text")
}

func TestOpsOffersNothingElse(t *testing.T) {
	o := newOpsEndpoints(prometheus.NewRegistry())
	for _, path := range []string{"/", "/debug/pprof/", "/metrics/x"} {
		assert.Equal(t, 404, get(t, o, path).Code, path)
	}
	w := httptest.NewRecorder()
	o.handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/healthz", http.NoBody))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

// TestReady: what `curfew healthcheck` asks is what the ops endpoints answer.
func TestReady(t *testing.T) {
	o := newOpsEndpoints(prometheus.NewRegistry())
	addr := startOps(t, o)
	err := cli.Ready(t.Context(), addr)
	assert.ErrorContains(t, err, "not ready")
	assert.ErrorContains(t, err, "starting")
	o.enter(ready)
	assert.NoError(t, cli.Ready(t.Context(), addr))
}

// startOps serves o on a free port for the test and returns its address.
func startOps(t *testing.T, o *opsEndpoints) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(ctx, o.server(), l) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	return l.Addr().String()
}
