package telemetry

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricscollector "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is one that decodes what it is sent. It answers in the process too, as an
// http.RoundTripper, for tests in virtual time.
type collector struct {
	t      testing.TB
	answer func(w http.ResponseWriter, r *http.Request) bool // false: it did not answer; nil: 200

	mu      sync.Mutex
	tried   []time.Time // every request
	header  http.Header // of the last
	spans   []*tracepb.ResourceSpans
	metrics []*metricspb.ResourceMetrics
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.tried, c.header = append(c.tried, time.Now()), r.Header.Clone()
	c.mu.Unlock()
	if c.answer != nil && c.answer(w, r) {
		return
	}
	assert.Equal(c.t, http.MethodPost, r.Method)
	assert.Equal(c.t, "application/x-protobuf", r.Header.Get("Content-Type"))
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if !assert.NoError(c.t, err) {
			return
		}
		body = unzipped
	}
	text, err := io.ReadAll(body)
	assert.NoError(c.t, err)
	c.take(r.URL.Path, text)
}

func (c *collector) take(path string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch path {
	case "/v1/traces":
		var request tracecollector.ExportTraceServiceRequest
		assert.NoError(c.t, proto.Unmarshal(body, &request))
		c.spans = append(c.spans, request.ResourceSpans...)
	case "/v1/metrics":
		var request metricscollector.ExportMetricsServiceRequest
		assert.NoError(c.t, proto.Unmarshal(body, &request))
		c.metrics = append(c.metrics, request.ResourceMetrics...)
	default:
		c.t.Errorf("posted to %s", path)
	}
}

// RoundTrip implements http.RoundTripper.
func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// allSpans are those taken so far.
func (c *collector) allSpans() (list []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.spans {
		list = append(list, r.ScopeSpans[0].Spans...)
	}
	return list
}

// metricRequests is how many were taken.
func (c *collector) metricRequests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.metrics)
}

// requests is how many there were.
func (c *collector) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tried)
}

const sampledParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// bench is an exporter that runs in virtual time, with its collector.
type bench struct {
	*Exporter
	*collector
	registry *prometheus.Registry
	stop     func()
}

// inBubble runs fn with an exporter of o that is running; both signals are sent unless o says
// which.
func inBubble(t *testing.T, o Options, fn func(t *testing.T, x *bench)) {
	synctest.Test(t, func(t *testing.T) {
		x := &bench{collector: &collector{t: t}, registry: prometheus.NewRegistry()}
		if o.Metrics.URL == "" && o.Spans.URL == "" {
			o.Metrics.URL, o.Spans.URL = "http://c:4318/v1/metrics", "http://c:4318/v1/traces"
		}
		o.Gatherer, o.Registerer = x.registry, x.registry
		var err error
		x.Exporter, err = New(o)
		require.NoError(t, err)
		for _, s := range []*sender{x.Exporter.metrics, x.Exporter.spans} {
			if s != nil {
				s.client.Transport = x.collector
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- x.Run(ctx) }()
		x.stop = sync.OnceFunc(func() {
			cancel()
			assert.NoError(t, <-ended)
		})
		defer x.stop()
		fn(t, x)
	})
}

// count is the value of one of the exporter's own counters.
func (x *bench) count(s *sender, of func(counts) prometheus.Counter) int {
	return int(testutil.ToFloat64(of(s.counts)))
}

func exportedOf(c counts) prometheus.Counter { return c.exported }
func droppedOf(c counts) prometheus.Counter  { return c.dropped }
func failuresOf(c counts) prometheus.Counter { return c.failures }

// attributesOf are text, numbers and lists of text by key.
func attributesOf(list []*commonpb.KeyValue) map[string]any {
	m := make(map[string]any)
	for _, a := range list {
		m[a.Key] = valueOf(a.Value)
	}
	return m
}

func valueOf(v *commonpb.AnyValue) any {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_ArrayValue:
		var list []any
		for _, v := range v.ArrayValue.Values {
			list = append(list, valueOf(v))
		}
		return list
	}
	return nil
}
