package telemetry

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"curfew/broker/deadline"
)

const (
	sampledParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	silentParent  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// collector takes what an exporter sends.
type collector struct {
	refuse func() bool // a request, if set

	mu      sync.Mutex
	about   map[string]any // the attributes of the resource
	spans   []*tracepb.Span
	metrics map[string]*metricspb.Metric
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.refuse != nil && c.refuse() {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	var traces tracecollector.ExportTraceServiceRequest
	var metrics metricscollector.ExportMetricsServiceRequest
	switch {
	case err != nil:
	case r.URL.Path == "/v1/traces" && proto.Unmarshal(body, &traces) == nil:
		for _, of := range traces.ResourceSpans {
			c.about = attributesOf(of.Resource.Attributes)
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	case r.URL.Path == "/v1/metrics" && proto.Unmarshal(body, &metrics) == nil:
		for _, of := range metrics.ResourceMetrics {
			c.about = attributesOf(of.Resource.Attributes)
			for _, scope := range of.ScopeMetrics {
				for _, m := range scope.Metrics {
					c.metrics[m.Name] = m
				}
			}
		}
	}
}

func attributesOf(list []*commonpb.KeyValue) map[string]any {
	all := make(map[string]any)
	for _, a := range list {
		all[a.Key] = valueOf(a.Value)
	}
	return all
}

func valueOf(v *commonpb.AnyValue) any {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_ArrayValue:
		var list []any
		for _, element := range v.ArrayValue.Values {
			list = append(list, valueOf(element))
		}
		return list
	}
	return nil
}

// open starts a collector and an exporter that sends to it. end stops the exporter, which sends
// what is left.
func open(t *testing.T, o Options) (c *collector, x *Exporter, end func()) {
	t.Helper()
	c = &collector{metrics: make(map[string]*metricspb.Metric)}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	if o.Sampler == (Sampler{}) {
		o.Sampler = Samplers(1)["always_on"]
	}
	x, err := New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx) }()
	return c, x, sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
}

// late is a message that was dead-lettered 1.5 ms after its deadline.
func late() *deadline.Expiry {
	due := deadline.At(time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC))
	return &deadline.Expiry{
		Ref: deadline.Ref{Deadline: due}, Arrived: due.Add(1500 * time.Microsecond), VHost: "/", Queue: "orders", MessageID: []byte("m-1"), Path: deadline.Eager,
		Action: deadline.DeadLettered, Exchange: "dlx", RoutingKey: []byte("late"), To: []string{"dead", "copy"},
		Trace: deadline.Trace{Parent: []byte(sampledParent), State: []byte("rojo=00f067aa0ba902b7")},
	}
}

func TestSpanOfADeadLetter(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	c, x, end := open(t, Options{Spans: true, Version: "1.2", Instance: "i-1"})
	x.Expired([]deadline.Expiry{*late()})
	end()
	for key, want := range map[string]string{
		"service.name": "curfew", "service.version": "1.2", "service.instance.id": "i-1", "deployment.environment.name": "test",
	} {
		assert.Equal(t, want, c.about[key], key)
	}
	require.Len(t, c.spans, 1)
	span := c.spans[0]
	assert.Equal(t, "dead_letter orders", span.Name)
	assert.Equal(t, tracepb.Span_SPAN_KIND_INTERNAL, span.Kind)
	assert.Equal(t, uint64(late().Ref.Deadline.Time().UnixNano()), span.StartTimeUnixNano)
	assert.Equal(t, uint64(late().Arrived.Time().UnixNano()), span.EndTimeUnixNano)
	assert.Empty(t, span.ParentSpanId)
	assert.Equal(t, map[string]any{
		"messaging.system": "rabbitmq", "messaging.operation.name": "dead_letter", "messaging.destination.name": "orders",
		"messaging.message.id": "m-1", "curfew.vhost": "/", "curfew.deadline": "2026-03-01T12:00:00.250000Z", "curfew.lateness_ms": 1.5,
		"curfew.path": "eager", "curfew.outcome": "dead_lettered", "curfew.dead_letter.exchange": "dlx", "curfew.dead_letter.routing_key": "late",
		"curfew.dead_letter.queues": []any{"dead", "copy"},
	}, attributesOf(span.Attributes))
	require.Len(t, span.Links, 1)
	link := span.Links[0]
	assert.Equal(t, "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331", hex.EncodeToString(link.TraceId)+" "+hex.EncodeToString(link.SpanId))
	assert.NotEqual(t, link.TraceId, span.TraceId, "a trace of its own")
	assert.EqualValues(t, 1, testutil.ToFloat64(x.spans.exported))
}

func TestSpanOfWhatWasDropped(t *testing.T) {
	c, x, end := open(t, Options{Spans: true})
	x.Expired([]deadline.Expiry{{Ref: deadline.Ref{Deadline: deadline.At(time.Unix(10, 0))}, Arrived: deadline.At(time.Unix(9, 0)), VHost: "v", Queue: "q", Path: deadline.Manual}})
	end()
	require.Len(t, c.spans, 1)
	span := c.spans[0]
	assert.Equal(t, "expire q", span.Name)
	assert.Empty(t, span.Links)
	assert.Equal(t, []uint64{9e9, 9e9}, []uint64{span.StartTimeUnixNano, span.EndTimeUnixNano}, "somebody had it fire early")
	assert.Equal(t, map[string]any{
		"messaging.system": "rabbitmq", "messaging.operation.name": "expire", "messaging.destination.name": "q", "curfew.vhost": "v",
		"curfew.deadline": "1970-01-01T00:00:10.000000Z", "curfew.lateness_ms": 0.0, "curfew.path": "manual", "curfew.outcome": "dropped",
	}, attributesOf(span.Attributes))
}

func TestSamplers(t *testing.T) {
	for name, want := range map[string][]bool{ // sampled, not sampled, without a trace
		"always_on": {true, true, true}, "always_off": {false, false, false},
		"parentbased_always_on": {true, false, true}, "parentbased_always_off": {true, false, false},
		"traceidratio": {false, false, false}, "parentbased_traceidratio": {true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			sampler := Samplers(0)[name]
			c, x, end := open(t, Options{Spans: true})
			x.sampler = sampler
			for i, parent := range []string{sampledParent, silentParent, ""} {
				e := late()
				e.Queue, e.Trace.Parent = []string{"a", "b", "c"}[i], []byte(parent)
				x.Expired([]deadline.Expiry{*e})
			}
			end()
			var names []string
			for _, s := range c.spans {
				names = append(names, strings.TrimPrefix(s.Name, "dead_letter "))
			}
			for i, queue := range []string{"a", "b", "c"} {
				assert.Equal(t, want[i], slices.Contains(names, queue), queue)
			}
		})
	}
}

// Whatever a publisher writes, the spans of other messages arrive.
func TestHostileMessagesCostNoOtherSpan(t *testing.T) {
	c, x, end := open(t, Options{Spans: true})
	hostile := []string{"\xff\xfe\x00", strings.Repeat("\xff", 70_000), "00-0-0-0", "ff" + sampledParent[2:], strings.ToUpper(sampledParent), "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01"}
	for _, text := range hostile {
		e := late()
		e.Queue, e.VHost, e.Exchange, e.To = text[:min(len(text), 255)], text, text, slices.Repeat([]string{text}, 1000)
		e.MessageID, e.RoutingKey, e.Trace.Parent, e.Trace.State = []byte(text), []byte(text), []byte(text), []byte(text)
		x.Expired([]deadline.Expiry{*e})
	}
	x.Expired([]deadline.Expiry{*late()})
	end()
	require.Len(t, c.spans, len(hostile)+1)
	for _, s := range c.spans[:len(hostile)] {
		assert.Empty(t, s.Links)
		assert.LessOrEqual(t, len(attributesOf(s.Attributes)["curfew.dead_letter.queues"].([]any)), maxTargets)
	}
	assert.Equal(t, "dead_letter orders", c.spans[len(hostile)].Name)
	assert.Zero(t, testutil.ToFloat64(x.spans.dropped))
}

// A collector that hangs, or refuses, costs spans and nothing else.
func TestWhatFindsNoRoomIsCounted(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	c, x, end := open(t, Options{Spans: true})
	hanging := make(chan struct{})
	c.refuse = func() bool {
		<-hanging
		return true
	}
	for range maxWaiting + 1000 {
		x.Expired([]deadline.Expiry{*late()})
	}
	assert.EqualValues(t, 1000, testutil.ToFloat64(x.spans.dropped))
	close(hanging)
	require.Eventually(t, func() bool { return x.waiting.Load() == 0 }, time.Minute, time.Millisecond)
	end()
	assert.EqualValues(t, maxWaiting+1000, testutil.ToFloat64(x.spans.dropped), "those that were refused")
	assert.NotZero(t, testutil.ToFloat64(x.spans.failures))
	assert.Zero(t, testutil.ToFloat64(x.spans.exported))
}

func TestMetricsAreThoseOfTheRegistry(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "curfew_fired_total", Help: "Fired."}, []string{"queue"})
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "curfew_lateness_seconds", Buckets: []float64{1, 2}})
	registry.MustRegister(counter, histogram)
	counter.WithLabelValues("orders").Add(3)
	histogram.Observe(1.5)
	c, _, end := open(t, Options{Metrics: true, Gatherer: registry, Registerer: registry})
	end()
	sum := c.metrics["curfew_fired_total"].GetSum()
	require.Len(t, sum.GetDataPoints(), 1)
	assert.True(t, sum.IsMonotonic)
	assert.EqualValues(t, 3, sum.DataPoints[0].GetAsDouble())
	assert.Equal(t, map[string]any{"queue": "orders"}, attributesOf(sum.DataPoints[0].Attributes))
	assert.Equal(t, []uint64{0, 1, 0}, c.metrics["curfew_lateness_seconds"].GetHistogram().DataPoints[0].BucketCounts)
	exported, err := testutil.GatherAndCount(registry, "curfew_otel_exported_total")
	require.NoError(t, err)
	assert.NotZero(t, exported)
}

func BenchmarkExpired(b *testing.B) {
	for name, parent := range map[string]string{"untraced": "", "not sampled": silentParent, "sampled": sampledParent} {
		b.Run(name, func(b *testing.B) {
			b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			x, err := New(Options{Spans: true, Sampler: Samplers(1)["parentbased_always_off"]})
			require.NoError(b, err)
			e := late()
			e.Trace.Parent = []byte(parent)
			b.ReportAllocs()
			for b.Loop() {
				x.Expired([]deadline.Expiry{*e})
				x.waiting.Store(0) // the queue of the SDK is full soon
			}
		})
	}
}
