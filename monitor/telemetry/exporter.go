package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	"go.uber.org/zap"
)

const (
	// maxBatch is how many spans a request carries.
	maxBatch = 512
	// sendAfter is how long the first span that waits does, before all are sent.
	sendAfter = time.Second
	// spansTryFor is how long spans are tried to be sent. What follows waits, as far as
	// there is room.
	spansTryFor = time.Minute
	// endLimit is how long what is left when Run is to end may take to be sent.
	endLimit = 2 * time.Second
)

// Exporter sends metrics and spans. Samples and Add are safe for concurrent use.
type Exporter struct {
	sampler  Sampler
	every    time.Duration
	began    time.Time
	gatherer prometheus.Gatherer
	resource *resourcepb.Resource
	scope    *commonpb.InstrumentationScope
	log      *zap.Logger

	metrics, spans *sender // nil: not sent
	ungathered     bool    // that metrics could not be gathered has been logged

	begun chan struct{} // something waits
	wake  chan struct{} // a whole batch does

	mu      sync.Mutex
	waiting buffer
}

// New returns an exporter that sends nothing before Run. It is to be made before what is
// counted begins: counters that do not say since when they count do so from here. Its
// error: a metric of its own is registered already.
func New(o Options) (*Exporter, error) {
	x := &Exporter{
		sampler: o.Sampler, every: o.MetricInterval, began: time.Now(), gatherer: o.Gatherer, log: o.Log,
		resource: &resourcepb.Resource{}, scope: &commonpb.InstrumentationScope{Name: "curfew", Version: o.Version},
		begun: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	if x.every == 0 {
		x.every = DefaultMetricInterval
	}
	if x.log == nil {
		x.log = zap.NewNop()
	}
	x.log = x.log.Named("otel")
	for _, key := range slices.Sorted(maps.Keys(o.Resource)) {
		x.resource.Attributes = append(x.resource.Attributes, textAttribute(valid(key), o.Resource[key]))
	}
	return x, x.open(&o)
}

func (x *Exporter) open(o *Options) error {
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	counts, err := newCounts(o.Registerer)
	if err != nil {
		return err
	}
	if o.Metrics.URL != "" {
		x.metrics = newSender(o.Metrics, counts("metrics"), rejectedPoints, x.log)
	}
	if o.Spans.URL != "" {
		x.spans = newSender(o.Spans, counts("traces"), rejectedSpans, x.log)
	}
	return nil
}

// Traces says whether spans are sent.
func (x *Exporter) Traces() bool { return x.spans != nil }

// Samples says whether a message with this header traceparent, nil if it has none, is to
// have a span.
func (x *Exporter) Samples(traceparent []byte) bool { return x.sampler.samples(traceparent) }

// Add has spans made of messages that expired. It copies what it keeps, and waits for
// nothing; what there is no room for is counted.
func (x *Exporter) Add(expired []Expiry) {
	if len(expired) == 0 || x.spans == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	b := &x.waiting
	room := min(maxWaiting-len(b.expiries), len(expired))
	for i := range expired[:room] {
		b.add(&expired[i])
	}
	x.spans.counts.dropped.Add(float64(len(expired) - room))
	signal(x.begun)
	if len(b.expiries) >= maxBatch {
		signal(x.wake)
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends, then what is left, for two seconds at most, and returns nil.
func (x *Exporter) Run(ctx context.Context) error {
	posting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(endLimit, cancel) })
	var running sync.WaitGroup
	if x.metrics != nil {
		x.log.Info("metrics are sent", zap.String("collector", x.metrics.host()), zap.Duration("every", x.every))
		running.Go(func() { x.runMetrics(ctx, posting) })
	}
	if x.spans != nil {
		x.log.Info("spans of expired messages are sent", zap.String("collector", x.spans.host()))
		running.Go(func() { x.runSpans(ctx, posting) })
	}
	running.Wait()
	<-ctx.Done()
	return nil
}

// runMetrics sends all metrics at each interval, and once more at the end. What is not
// taken within an interval is out of date then.
func (x *Exporter) runMetrics(ctx, posting context.Context) {
	defer x.metrics.client.CloseIdleConnections()
	tick := time.NewTicker(x.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			x.sendMetrics(ctx, posting)
		case <-ctx.Done():
			x.sendMetrics(ctx, posting)
			return
		}
	}
}

func (x *Exporter) sendMetrics(ctx, posting context.Context) {
	families, err := x.gatherer.Gather() // what it has, also with an error
	if err != nil && !x.ungathered {
		x.ungathered = true
		x.log.Error("some metrics could not be gathered", zap.Error(err))
	}
	request, points := x.metricRequest(families, time.Now())
	x.metrics.send(ctx, posting, request, points, x.every)
}

// runSpans sends what is added: soon after the first, or when a batch is full and the
// collector takes it.
func (x *Exporter) runSpans(ctx, posting context.Context) {
	defer x.spans.client.CloseIdleConnections()
	timer := time.NewTimer(sendAfter)
	defer timer.Stop()
	var taken buffer
	for armed := true; ; {
		select {
		case <-x.begun:
			if !armed {
				armed = true
				timer.Reset(sendAfter)
			}
			continue
		case <-timer.C:
			armed = false
		case <-x.wake:
			if x.spans.failing {
				continue
			}
		case <-ctx.Done():
			x.sendSpans(ctx, posting, &taken)
			return
		}
		x.sendSpans(ctx, posting, &taken)
	}
}

// sendSpans takes what waits and sends it. taken is empty before and after.
func (x *Exporter) sendSpans(ctx, posting context.Context, taken *buffer) {
	x.mu.Lock()
	*taken, x.waiting = x.waiting, *taken
	x.mu.Unlock()
	for batch := range slices.Chunk(taken.expiries, maxBatch) {
		x.spans.send(ctx, posting, x.spanRequest(batch), len(batch), spansTryFor)
	}
	taken.reset()
}
