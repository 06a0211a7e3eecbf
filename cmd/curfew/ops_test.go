package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

func get(t *testing.T, o *ops, path string, header ...string) *httptest.ResponseRecorder {
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
	o := newOps(prometheus.NewRegistry())
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

func TestHealthAddsItsPartsUp(t *testing.T) {
	ok := vitals{Detail: map[string]int{"pending": 3}}
	degraded := vitals{Reasons: []string{"Redis is away"}}
	dead := vitals{Dead: true, Reasons: []string{"no tick for 20s"}}
	for _, c := range []struct {
		name   string
		parts  map[string]vitals
		code   int
		status string
		want   []string
	}{
		{"nothing yet", nil, 200, "ok", nil},
		{"ok", map[string]vitals{"monitor": ok}, 200, "ok", nil},
		{"degraded", map[string]vitals{"broker": ok, "monitor": degraded}, 200, "degraded", []string{"monitor: Redis is away"}},
		{"dead", map[string]vitals{"a": dead, "b": degraded}, 503, "dead", []string{"a: no tick for 20s", "b: Redis is away"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOps(prometheus.NewRegistry())
			for name, v := range c.parts {
				o.watch(name, func() vitals { return v })
			}
			w := get(t, o, "/healthz")
			assert.Equal(t, c.code, w.Code)
			assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
			var h health
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &h))
			assert.Equal(t, c.status, h.Status)
			assert.Equal(t, c.want, h.Reasons)
		})
	}
}

func TestMetricsSpeakOpenMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{100}})
	registry.MustRegister(h)
	o := newOps(registry)
	assert.Contains(t, get(t, o, "/metrics").Body.String(), `h_bucket{le="100"} 0`)
	w := get(t, o, "/metrics", "Accept", "application/openmetrics-text; version=1.0.0")
	assert.Contains(t, w.Body.String(), `h_bucket{le="100.0"} 0`)
	assert.Contains(t, w.Header().Get("Content-Type"), "application/openmetrics-text")
}

func TestOpsOffersNothingElse(t *testing.T) {
	o := newOps(prometheus.NewRegistry())
	for _, path := range []string{"/", "/debug/pprof/", "/metrics/x"} {
		assert.Equal(t, 404, get(t, o, path).Code, path)
	}
	w := httptest.NewRecorder()
	o.handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/healthz", http.NoBody))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

// TestStoreVitals: what cannot be saved, and what was found without a definition, is told.
func TestStoreVitals(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	b, err := broker.New(o)
	require.NoError(t, err)
	n := &node{broker: b}
	require.Empty(t, n.storeVitals())
	require.NoError(t, os.Mkdir(filepath.Join(o.Store.Dir, "definitions.tmp"), 0o700)) // where the file is made anew
	_, err = b.SetGlobalParameter("large", strings.Repeat("x", 1<<20))
	require.Error(t, err)
	require.Len(t, n.storeVitals().Reasons, 1)
	require.Contains(t, n.storeVitals().Reasons[0], "cannot be made or changed")
	require.NoError(t, os.Remove(filepath.Join(o.Store.Dir, "definitions.tmp")))
	vh, _ := b.VHost("/")
	q, err := vh.DeclareQueue(nil, "q", broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.Empty(t, n.storeVitals())
	p := vh.OwnPublisher()
	m := amqp.Properties{DeliveryMode: 2}
	_, err = p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: m.Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)
	require.NoError(t, b.Close())

	s, _, err := store.Open(o.Store)
	require.NoError(t, err)
	s.Define(store.Definition{Key: `queue "/" "q"`})
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())
	n.broker, err = broker.New(o)
	require.NoError(t, err)
	vh, _ = n.broker.VHost("/")
	require.Len(t, n.storeVitals().Reasons, 1)
	require.Contains(t, n.storeVitals().Reasons[0], "without the definition of their queue stand in 1 queue(s)")
	_, err = vh.DeleteQueue(nil, fmt.Sprint(broker.RecoveredPrefix, q.ID()), false, false)
	require.NoError(t, err)
	require.Empty(t, n.storeVitals())
	require.NoError(t, n.broker.Close())
}
