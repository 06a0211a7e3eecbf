package telemetry

import (
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// converter makes of Prometheus's metrics those of OpenTelemetry (OpenTelemetry:
// Prometheus and OpenMetrics Compatibility), with the names they have.
type converter struct {
	began  uint64 // Unix ns: since when what has no instant of its own is counted
	now    uint64 // Unix ns
	points int    // made
}

// metricRequest is the request that carries families, and how many points it has.
func (x *Exporter) metricRequest(families []*dto.MetricFamily, now time.Time) (m proto.Message, points int) {
	c := converter{began: nanos(x.began), now: nanos(now)}
	var metrics []*metricspb.Metric
	for _, f := range families {
		if m := c.metric(f); m.Data != nil {
			metrics = append(metrics, m)
		}
	}
	return &collectorpb.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: x.resource, ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: x.scope, Metrics: metrics}},
	}}}, c.points
}

// rejectedPoints reads the answer to it. What cannot be read rejects nothing.
func rejectedPoints(answer []byte) (rejected int64, why string) {
	var a collectorpb.ExportMetricsServiceResponse
	_ = proto.Unmarshal(answer, &a)
	return a.GetPartialSuccess().GetRejectedDataPoints(), a.GetPartialSuccess().GetErrorMessage()
}

// metric converts a family; without Data if it is of a kind that nothing here has.
func (c *converter) metric(f *dto.MetricFamily) *metricspb.Metric {
	m := &metricspb.Metric{Name: f.GetName(), Description: f.GetHelp(), Unit: unitOf(f.GetName())}
	const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		m.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{
			IsMonotonic: true, AggregationTemporality: cumulative, DataPoints: convert(c, f, c.count),
		}}
	case dto.MetricType_GAUGE:
		m.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: convert(c, f, c.level)}}
	case dto.MetricType_HISTOGRAM:
		m.Data = &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
			AggregationTemporality: cumulative, DataPoints: convert(c, f, c.histogram),
		}}
	case dto.MetricType_SUMMARY:
		m.Data = &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: convert(c, f, c.summary)}}
	}
	return m
}

// convert makes the points of a family.
func convert[P any](c *converter, f *dto.MetricFamily, point func(*dto.Metric, []*commonpb.KeyValue) P) []P {
	points := make([]P, 0, len(f.Metric))
	for _, m := range f.Metric {
		points = append(points, point(m, labels(m)))
	}
	c.points += len(points)
	return points
}

func labels(m *dto.Metric) []*commonpb.KeyValue {
	list := make([]*commonpb.KeyValue, 0, len(m.Label))
	for _, l := range m.Label {
		list = append(list, textAttribute(l.GetName(), l.GetValue()))
	}
	return list
}

func (c *converter) count(m *dto.Metric, attributes []*commonpb.KeyValue) *metricspb.NumberDataPoint {
	return &metricspb.NumberDataPoint{
		Attributes: attributes, StartTimeUnixNano: c.start(m.Counter.CreatedTimestamp), TimeUnixNano: c.now,
		Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: m.Counter.GetValue()},
	}
}

func (c *converter) level(m *dto.Metric, attributes []*commonpb.KeyValue) *metricspb.NumberDataPoint {
	return &metricspb.NumberDataPoint{
		Attributes: attributes, TimeUnixNano: c.now, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: m.Gauge.GetValue()},
	}
}

// histogram: Prometheus counts a bucket with all below it and may leave out the last,
// OpenTelemetry counts each alone.
func (c *converter) histogram(m *dto.Metric, attributes []*commonpb.KeyValue) *metricspb.HistogramDataPoint {
	h := m.Histogram
	p := &metricspb.HistogramDataPoint{
		Attributes: attributes, StartTimeUnixNano: c.start(h.CreatedTimestamp), TimeUnixNano: c.now,
		Count: h.GetSampleCount(), Sum: h.SampleSum,
	}
	below := uint64(0)
	for _, b := range h.Bucket {
		if math.IsInf(b.GetUpperBound(), +1) {
			break
		}
		p.ExplicitBounds = append(p.ExplicitBounds, b.GetUpperBound())
		p.BucketCounts = append(p.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	p.BucketCounts = append(p.BucketCounts, p.Count-below)
	return p
}

func (c *converter) summary(m *dto.Metric, attributes []*commonpb.KeyValue) *metricspb.SummaryDataPoint {
	p := &metricspb.SummaryDataPoint{
		Attributes: attributes, StartTimeUnixNano: c.start(m.Summary.CreatedTimestamp), TimeUnixNano: c.now,
		Count: m.Summary.GetSampleCount(), Sum: m.Summary.GetSampleSum(),
	}
	for _, q := range m.Summary.Quantile {
		p.QuantileValues = append(p.QuantileValues, &metricspb.SummaryDataPoint_ValueAtQuantile{Quantile: q.GetQuantile(), Value: q.GetValue()})
	}
	return p
}

// start is since when something is counted.
func (c *converter) start(created *timestamppb.Timestamp) uint64 {
	if created == nil {
		return c.began
	}
	return min(nanos(created.AsTime()), c.now)
}

// unitOf reads the unit (UCUM) off the name, which Prometheus's conventions have end in it.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return "s"
	case strings.HasSuffix(name, "_bytes"):
		return "By"
	case strings.HasSuffix(name, "_ratio"):
		return "1"
	}
	return ""
}
