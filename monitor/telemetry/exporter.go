package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	prometheusbridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

const (
	// maxWaiting is how many spans may wait to be sent. Further ones are dropped and counted.
	maxWaiting = 2048
	// spansTryFor is how long one batch of spans is tried.
	spansTryFor = time.Minute
	// endLimit is how long Run may take to send what is left.
	endLimit = 2 * time.Second
)

// Options of an Exporter.
type Options struct {
	Metrics, Spans bool    // which signals are sent
	Sampler        Sampler // of the spans
	Instance       string  // the attribute service.instance.id, unless OTEL_RESOURCE_ATTRIBUTES has one
	Version        string  // of Curfew
	Gatherer       prometheus.Gatherer
	Registerer     prometheus.Registerer // nil keeps the exporter's own metrics private
	Log            *zap.Logger           // nil: none
}

// Exporter sends metrics and spans. Expired is safe for concurrent use.
type Exporter struct {
	sampler Sampler
	log     *zap.Logger

	metrics *sdkmetric.MeterProvider // nil: not sent
	traces  *sdktrace.TracerProvider // nil: not sent
	tracer  trace.Tracer
	waiting atomic.Int64 // spans that are not sent yet
	spans   counters
}

// New returns an exporter. It reads the variables that OpenTelemetry's SDK knows; a value that
// the SDK cannot read is logged and ignored. It sets the SDK's logger and error handler, of which
// a process has one each. The error is what the SDK refuses.
func New(o Options) (*Exporter, error) {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	x := &Exporter{sampler: o.Sampler, log: o.Log.Named("otel")}
	otel.SetLogger(zapr.NewLogger(x.log))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { x.log.Warn("OpenTelemetry", zap.Error(err)) }))
	signals := newCounters(o.Registerer)
	about, err := resource.New(context.Background(), resource.WithAttributes(
		attribute.String("service.name", "curfew"),
		attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Instance),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if o.Metrics {
		err = x.openMetrics(about, o.Gatherer, signals("metrics"))
	}
	if o.Spans {
		err = errors.Join(err, x.openSpans(about, o.Version, signals("traces")))
	}
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return x, nil
}

func (x *Exporter) openMetrics(about *resource.Resource, from prometheus.Gatherer, counted counters) error {
	exporter, err := otlpmetrichttp.New(context.Background())
	if err != nil {
		return err
	}
	reader := sdkmetric.NewPeriodicReader(countedMetrics{exporter, counted},
		sdkmetric.WithProducer(prometheusbridge.NewMetricProducer(prometheusbridge.WithGatherer(from))))
	x.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
	return nil
}

func (x *Exporter) openSpans(about *resource.Resource, version string, counted counters) error {
	exporter, err := otlptracehttp.New(context.Background())
	if err != nil {
		return err
	}
	x.spans = counted
	x.traces = sdktrace.NewTracerProvider(
		sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // Expired has asked the Sampler
		sdktrace.WithBatcher(countedSpans{exporter, x}, sdktrace.WithMaxQueueSize(maxWaiting), sdktrace.WithExportTimeout(spansTryFor)),
	)
	x.tracer = x.traces.Tracer("curfew", trace.WithInstrumentationVersion(version))
	return nil
}

// Traces reports whether spans are sent.
func (x *Exporter) Traces() bool { return x.traces != nil }

// Run returns nil when ctx has ended and what was left has been sent, or could not be within
// two seconds.
func (x *Exporter) Run(ctx context.Context) error {
	x.log.Info("sending to OpenTelemetry", zap.Bool("metrics", x.metrics != nil), zap.Bool("spans", x.Traces()))
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	var err error
	if x.traces != nil {
		err = x.traces.Shutdown(ending)
	}
	if x.metrics != nil {
		err = errors.Join(err, x.metrics.Shutdown(ending))
	}
	if err != nil {
		x.log.Warn("the last telemetry was not sent", zap.Error(err))
	}
	return nil
}

// counters are the exporter's own metrics of one signal.
type counters struct{ exported, dropped, failures prometheus.Counter }

// newCounters registers the counters of both signals. A nil Registerer keeps them private.
func newCounters(r prometheus.Registerer) (of func(signal string) counters) {
	vector := func(name, help string) *prometheus.CounterVec {
		return promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"signal"})
	}
	exported := vector("curfew_otel_exported_total", "Spans, and metrics by name, that the OpenTelemetry collector has taken.")
	dropped := vector("curfew_otel_dropped_total",
		"Spans, and metrics by name, that the OpenTelemetry collector never got: too many waited, or it did not take them in time.")
	failures := vector("curfew_otel_failures_total", "Batches that the OpenTelemetry collector did not take in time.")
	return func(signal string) counters {
		return counters{exported.WithLabelValues(signal), dropped.WithLabelValues(signal), failures.WithLabelValues(signal)}
	}
}

// sent counts a batch of n, and returns its error.
func (c counters) sent(n int, err error) error {
	if err != nil {
		c.failures.Inc()
		c.dropped.Add(float64(n))
	} else {
		c.exported.Add(float64(n))
	}
	return err
}

// countedMetrics counts what an exporter of metrics sends.
type countedMetrics struct {
	sdkmetric.Exporter
	counters
}

func (c countedMetrics) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	n := 0
	for _, scope := range m.ScopeMetrics {
		n += len(scope.Metrics)
	}
	return c.sent(n, c.Exporter.Export(ctx, m))
}

// countedSpans counts what an exporter of spans sends.
type countedSpans struct {
	sdktrace.SpanExporter
	x *Exporter
}

func (c countedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer c.x.waiting.Add(-int64(len(spans)))
	return c.x.spans.sent(len(spans), c.SpanExporter.ExportSpans(ctx, spans))
}
