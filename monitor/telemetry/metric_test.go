package telemetry

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// named are the metrics of a request by name.
func named(r *metricspb.ResourceMetrics) map[string]*metricspb.Metric {
	all := make(map[string]*metricspb.Metric)
	for _, m := range r.ScopeMetrics[0].Metrics {
		all[m.Name] = m
	}
	return all
}

const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

// constant is a collector that hands out m, which says nothing of when it began.
type constant struct{ m prometheus.Metric }

func (c constant) Describe(ch chan<- *prometheus.Desc) { ch <- c.m.Desc() }
func (c constant) Collect(ch chan<- prometheus.Metric) { ch <- c.m }

func TestMetricsOfTheRegistry(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, x *bench) {
		began := time.Now()
		published := prometheus.NewDesc("curfew_messages_published_total", "Messages.", nil, nil)
		x.registry.MustRegister(constant{prometheus.MustNewConstMetric(published, prometheus.CounterValue, 7)})
		time.Sleep(10 * time.Second)
		fired := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "curfew_fired_total", Help: "Fired."}, []string{"action", "path"})
		fired.WithLabelValues("dropped", "eager").Add(3)
		pending := prometheus.NewGauge(prometheus.GaugeOpts{Name: "curfew_pending", Help: "Ahead."})
		pending.Set(-2.5)
		lateness := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "curfew_lateness_seconds", Help: "Late.", Buckets: []float64{0.001, 0.01, 1}})
		for _, v := range []float64{0.0005, 0.002, 0.003, 5} {
			lateness.Observe(v)
		}
		x.registry.MustRegister(fired, pending, lateness)
		time.Sleep(DefaultMetricInterval - 10*time.Second)
		synctest.Wait()

		require.Len(t, x.collector.metrics, 1)
		all := named(x.collector.metrics[0])
		now, created := uint64(time.Now().UnixNano()), uint64(began.Add(10*time.Second).UnixNano())
		m := all["curfew_messages_published_total"]
		assert.Equal(t, "Messages.", m.Description)
		sum := m.GetSum()
		assert.True(t, sum.IsMonotonic)
		assert.Equal(t, cumulative, sum.AggregationTemporality)
		assert.Equal(t, 7.0, sum.DataPoints[0].GetAsDouble())
		assert.Equal(t, []uint64{uint64(began.UnixNano()), now}, []uint64{sum.DataPoints[0].StartTimeUnixNano, sum.DataPoints[0].TimeUnixNano})
		point := all["curfew_fired_total"].GetSum().DataPoints[0]
		assert.Equal(t, map[string]any{"action": "dropped", "path": "eager"}, attributesOf(point.Attributes))
		assert.Equal(t, 3.0, point.GetAsDouble())
		assert.Equal(t, created, point.StartTimeUnixNano, "it says so itself")
		assert.Equal(t, -2.5, all["curfew_pending"].GetGauge().DataPoints[0].GetAsDouble())
		h := all["curfew_lateness_seconds"].GetHistogram()
		assert.Equal(t, cumulative, h.AggregationTemporality)
		assert.Equal(t, "s", all["curfew_lateness_seconds"].Unit)
		assert.Equal(t, []float64{0.001, 0.01, 1}, h.DataPoints[0].ExplicitBounds)
		assert.Equal(t, []uint64{1, 2, 0, 1}, h.DataPoints[0].BucketCounts)
		assert.Equal(t, uint64(4), h.DataPoints[0].Count)
		assert.InDelta(t, 5.0055, h.DataPoints[0].GetSum(), 1e-9)
		assert.Equal(t, []uint64{created, now}, []uint64{h.DataPoints[0].StartTimeUnixNano, h.DataPoints[0].TimeUnixNano})
		assert.Contains(t, all, "curfew_otel_failures_total", "its own as well")

		time.Sleep(DefaultMetricInterval)
		synctest.Wait()
		assert.Len(t, x.collector.metrics, 2)
		x.stop()
		assert.Len(t, x.collector.metrics, 3, "and at the end")
	})
}

// Every kind that Go's own collectors have is converted.
func TestMetricsOfEveryKind(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := r.Gather()
	require.NoError(t, err)
	x, err := New(Options{})
	require.NoError(t, err)
	request, points := x.metricRequest(families, time.Now())
	body, err := proto.Marshal(request)
	require.NoError(t, err)
	c := collector{t: t}
	c.take("/v1/metrics", body)
	all := named(c.metrics[0])
	assert.Len(t, all, len(families))
	assert.GreaterOrEqual(t, points, len(families))
	pauses := all["go_gc_duration_seconds"].GetSummary().DataPoints[0]
	assert.Len(t, pauses.QuantileValues, 5)
	assert.Equal(t, "By", all["go_memstats_heap_alloc_bytes"].Unit)
	assert.Equal(t, "s", all["process_cpu_seconds_total"].Unit)
}

// A family that gives the last bucket counts it once.
func TestHistogramWithItsLastBucket(t *testing.T) {
	h := prometheus.MustNewConstHistogram(prometheus.NewDesc("h", "", nil, nil), 3, 4, map[float64]uint64{1: 1, 2: 2})
	var m dto.Metric
	require.NoError(t, h.Write(&m))
	infinite := &dto.Bucket{UpperBound: proto.Float64(math.Inf(1)), CumulativeCount: proto.Uint64(3)}
	m.Histogram.Bucket = append(m.Histogram.Bucket, infinite)
	p := new(converter).histogram(&m, nil)
	assert.Equal(t, []float64{1, 2}, p.ExplicitBounds)
	assert.Equal(t, []uint64{1, 1, 1}, p.BucketCounts)
}

// failing gathers one metric, and an error.
type failing struct{ prometheus.Gatherer }

func (f failing) Gather() ([]*dto.MetricFamily, error) {
	families, _ := f.Gatherer.Gather()
	return families, errors.New("one collector fails")
}

func TestWhatCanBeGatheredIsSent(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, x *bench) {
		x.Exporter.gatherer = failing{x.registry}
		x.stop()
		assert.NotEmpty(t, named(x.collector.metrics[0]))
	})
}

func TestResourceIsSorted(t *testing.T) {
	x, err := New(Options{Resource: map[string]string{"b": "2", "a": "1", "c": "\xff"}})
	require.NoError(t, err)
	var keys []string
	for _, a := range x.resource.Attributes {
		keys = append(keys, a.Key)
	}
	assert.True(t, slices.IsSorted(keys))
	assert.Equal(t, map[string]any{"a": "1", "b": "2", "c": "\uFFFD"}, attributesOf(x.resource.Attributes))
}
