package commands

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collected is what a collector has received.
type collected struct {
	mu      sync.Mutex
	spans   []string
	metrics map[string]bool
	service string
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	var traces tracecollector.ExportTraceServiceRequest
	var metrics metricscollector.ExportMetricsServiceRequest
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.URL.Path == "/v1/traces" && proto.Unmarshal(body, &traces) == nil:
		for _, s := range traces.ResourceSpans[0].ScopeSpans[0].Spans {
			c.spans = append(c.spans, s.Name)
		}
	case r.URL.Path == "/v1/metrics" && proto.Unmarshal(body, &metrics) == nil:
		for _, a := range metrics.ResourceMetrics[0].Resource.Attributes {
			if a.Key == "service.name" {
				c.service = a.Value.GetStringValue()
			}
		}
		for _, m := range metrics.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			c.metrics[m.Name] = true
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// complete reports whether a span has arrived, and metrics with a deadline.
func (c *collected) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spans) > 0 && c.metrics["curfew_deadlines_fired_total"]
}

func TestServeSendsTelemetry(t *testing.T) {
	c := &collected{metrics: make(map[string]bool)}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "1000")
	t.Setenv("OTEL_SERVICE_NAME", "deadlines")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")
	p := startServe(t)
	conn, err := amqp091.Dial(p.line(t, "AMQP"))
	require.NoError(t, err)
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("orders", false, false, false, false, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
	require.NoError(t, err)
	_, err = ch.QueueDeclare("dead", false, false, false, false, nil)
	require.NoError(t, err)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	dead, err := ch.Consume("dead", "", true, false, false, false, nil)
	require.NoError(t, err)
	for _, headers := range []amqp091.Table{nil, {"traceparent": parent}} {
		require.NoError(t, ch.PublishWithContext(t.Context(), "", "orders", false, false, amqp091.Publishing{Expiration: "1", Headers: headers}))
		assert.Equal(t, headers["traceparent"], (<-dead).Headers["traceparent"], "is not rewritten")
	}
	require.Eventually(t, c.complete, time.Minute, 10*time.Millisecond, "spans and metrics do not arrive")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.wait(t), p.stderr)
	assert.Contains(t, p.stderr.String(), "soon", "what the SDK cannot read is named")

	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Equal(t, []string{"dead_letter orders"}, c.spans)
	assert.Equal(t, "deadlines", c.service)
	for _, name := range []string{"curfew_deadline_lateness_seconds", "curfew_deadlines_fired_total", "curfew_messages_published_total", "curfew_otel_exported_total", "go_goroutines"} {
		assert.True(t, c.metrics[name], name)
	}
}
