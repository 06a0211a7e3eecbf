package telemetry_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/monitor/telemetry"
)

const (
	sampledParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	silentParent  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// collected starts a collector, which hands over the spans of each request.
func collected(t *testing.T) (url string, spans <-chan []*tracepb.Span) {
	requests := make(chan []*tracepb.Span, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		var request tracecollector.ExportTraceServiceRequest
		assert.NoError(t, proto.Unmarshal(body, &request))
		requests <- request.ResourceSpans[0].ScopeSpans[0].Spans
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestSpansOfSampledMessages(t *testing.T) {
	url, spans := collected(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	x, err := telemetry.New(telemetry.Options{Spans: true, Sampler: telemetry.Sampler{Sampled: 1}})
	require.NoError(t, err)
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var now atomic.Int64
	now.Store(began.UnixNano())
	expiries := new(deadline.Stream)
	told := make(chan time.Duration, 3)
	expiries.Subscribe(deadline.Basic, func(batch []deadline.Expiry) {
		for i := range batch {
			told <- batch[i].Lateness()
		}
	})
	expiries.Subscribe(deadline.WithTrace, x.Expired)
	b, err := broker.New(broker.Options{Clock: now.Load, Expiries: expiries})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}})
	require.NoError(t, err)
	_, err = vh.Queues.Declare(nil, "dead", broker.QueueDeclare{})
	require.NoError(t, err)
	p := vh.OwnPublisher()
	for _, headers := range []amqp.Table{{"traceparent": sampledParent, "tracestate": []byte("a=b")}, {"traceparent": silentParent}, nil} {
		m := amqp.Properties{Expiration: "1000", MessageID: "m", Headers: headers}
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: m.Append(nil)})
		require.NoError(t, err)
	}
	p.Flush(nil)
	now.Store(began.Add(1007 * time.Millisecond).UnixNano())
	_, err = q.Messages.Get(true, func(*broker.Delivery) { t.Error("expired messages are not delivered") })
	require.NoError(t, err)

	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx) }()
	sent := <-spans
	end()
	require.NoError(t, <-ended)
	require.Len(t, sent, 1, "of three messages one was published in a trace that is recorded")
	assert.Equal(t, "dead_letter q", sent[0].Name)
	assert.Equal(t, began.Add(time.Second).UnixNano(), int64(sent[0].StartTimeUnixNano), "the deadline")
	assert.Equal(t, began.Add(1007*time.Millisecond).UnixNano(), int64(sent[0].EndTimeUnixNano), "when it was met")
	require.Len(t, sent[0].Links, 1)
	text := map[string]string{}
	for _, a := range sent[0].Attributes {
		if text[a.Key] = a.Value.GetStringValue(); a.Key == "curfew.lateness_ms" {
			assert.InDelta(t, (<-told).Seconds()*1e3, a.Value.GetDoubleValue(), 1e-9, "what every subscriber is told")
		}
	}
	assert.Equal(t, []string{"lazy", "dead_lettered", "m", "dead"},
		[]string{text["curfew.path"], text["curfew.outcome"], text["messaging.message.id"], text["curfew.dead_letter.routing_key"]})
}

func TestNoSpans(t *testing.T) {
	x, err := telemetry.New(telemetry.Options{Metrics: true, Gatherer: prometheus.NewRegistry()})
	require.NoError(t, err)
	assert.False(t, x.Traces(), "metrics alone are sent")
	x.Expired(make([]deadline.Expiry, 1))
	ctx, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, x.Run(ctx))
}
