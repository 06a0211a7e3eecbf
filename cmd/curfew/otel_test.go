package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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

	"curfew/monitor/telemetry"
)

// telemetryOf reads the environment; an error fails the test.
func telemetryOf(t *testing.T, settings ...string) *telemetry.Options {
	t.Helper()
	setenv(t, append([]string{"CURFEW_INSTANCE=i-1"}, settings...)...)
	c, err := loadConfig()
	require.NoError(t, err)
	return c.telemetry
}

func TestTelemetryIsOffByDefault(t *testing.T) {
	for _, settings := range [][]string{
		nil,
		{"OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_TRACES_EXPORTER= "},
		{"OTEL_SERVICE_NAME=app", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_SAMPLER=xray", "OTEL_LOGS_EXPORTER=otlp"}, // are another's
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_SDK_DISABLED=TRUE", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", "OTEL_METRICS_EXPORTER=none", "OTEL_TRACES_EXPORTER=none"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318", "OTEL_TRACES_SAMPLER=always_off"},
	} {
		assert.Nil(t, telemetryOf(t, settings...), "%v", settings)
	}
}

func TestTelemetrySignals(t *testing.T) {
	for settings, want := range map[string][2]bool{ // metrics, spans
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318":                                                     {true, true},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_SDK_DISABLED=False":                                  {true, true},
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c:1/own":                                            {true, false},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:1":                                                 {false, true},
		"OTEL_METRICS_EXPORTER=otlp":                                                                    {true, false},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_METRICS_EXPORTER=none":                               {false, true},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_SAMPLER=always_off":                           {true, false},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_EXPORTER=none OTEL_TRACES_SAMPLER=xray":       {true, false}, // how they are sampled is for others
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_METRICS_EXPORTER=none OTEL_TRACES_SAMPLER=always_on": {false, true},
	} {
		o := telemetryOf(t, strings.Fields(settings)...)
		require.NotNil(t, o, settings)
		assert.Equal(t, want, [2]bool{o.Metrics, o.Spans}, settings)
		assert.Equal(t, "i-1", o.Instance)
	}
	assert.Equal(t, telemetry.Sampler{Sampled: 1}, telemetryOf(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c").Sampler)
	assert.Equal(t, telemetry.Sampler{Sampled: 1, Untraced: 0.25},
		telemetryOf(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.25").Sampler)
}

func TestTelemetryWrongValues(t *testing.T) {
	for setting, allowed := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=c:4318":            "http:// or https:// URL",
		"OTEL_EXPORTER_OTLP_ENDPOINT=grpc://c:4317":     "http:// or https:// URL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://":    "http:// or https:// URL",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc":              "it takes http/protobuf",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/json": "it takes http/protobuf",
		"OTEL_METRICS_EXPORTER=prometheus":              "otlp or none",
		"OTEL_TRACES_EXPORTER=console":                  "otlp or none",
		"OTEL_TRACES_SAMPLER=jaeger_remote":             "always_on, always_off or traceidratio",
		"OTEL_TRACES_SAMPLER_ARG=NaN":                   "0 to 1",
		"OTEL_TRACES_SAMPLER_ARG=2":                     "0 to 1",
		"OTEL_SDK_DISABLED=yes":                         "true or false",
	} {
		t.Run(setting, func(t *testing.T) {
			setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", setting)
			_, err := loadConfig()
			var usage usageError
			require.True(t, errors.As(err, &usage), "got %v", err)
			name, value, _ := strings.Cut(setting, "=")
			assert.ErrorContains(t, err, name+`: "`+value+`" is not allowed`)
			assert.ErrorContains(t, err, allowed)
			assert.Equal(t, 1, strings.Count(err.Error(), "is not allowed"), "once, though it is of two signals")
		})
	}
}

func TestTelemetryKeepsSecrets(t *testing.T) {
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=grpc://ann:s3cret@c")
	_, err := loadConfig()
	assert.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
	assert.NotContains(t, err.Error(), "s3cret")
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=https://ann:s3cret@c/x", "OTEL_EXPORTER_OTLP_HEADERS=a=s3cret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=b=s3cret", "OTEL_SERVICE_NAME=deadlines")
	code, out, errOut := runCommand(t, "config")
	require.Zero(t, code, errOut)
	assert.NotContains(t, out+errOut, "s3cret")
	for _, want := range []string{" https://c/x ", "********", " deadlines ", "OTEL_EXPORTER_OTLP_TRACES_HEADERS ", "OTEL_TRACES_SAMPLER "} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "OTEL_EXPORTER_OTLP_METRICS_HEADERS ", "it is not set")
}

func TestSidecarsMayHaveTelemetry(t *testing.T) {
	for name, known := range map[string]bool{
		"OTEL_EXPORTER_OTLP_ENDPOINT": true, "OTEL_EXPORTER_OTLP_TRACES_HEADERS": true, "OTEL_SERVICE_NAME": true, "OTEL_BSP_SCHEDULE_DELAY": true, "CURFEW_OTEL": false,
	} {
		assert.Equal(t, known, knownVariable(name), name)
	}
}

// collected is what a collector was sent.
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

// complete says that a span has come, and metrics that tell of a deadline.
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
