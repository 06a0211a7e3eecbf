package main

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricscollector "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
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

func TestTelemetryGoesWhereItIsTold(t *testing.T) {
	for _, c := range []struct{ settings, metrics, spans string }{
		{"ENDPOINT=http://c:4318", "http://c:4318/v1/metrics", "http://c:4318/v1/traces"},
		{"ENDPOINT=https://c/", "https://c/v1/metrics", "https://c/v1/traces"},
		{"ENDPOINT=https://c/a/b/?k=v", "https://c/a/b/v1/metrics?k=v", "https://c/a/b/v1/traces?k=v"},
		{"METRICS_ENDPOINT=http://c:1/own", "http://c:1/own", ""},
		{"TRACES_ENDPOINT=http://c:1", "", "http://c:1/"},
		{"ENDPOINT=http://c TRACES_ENDPOINT=http://d/x", "http://c/v1/metrics", "http://d/x"},
	} {
		var settings []string
		for s := range strings.FieldsSeq(c.settings) {
			settings = append(settings, "OTEL_EXPORTER_OTLP_"+s)
		}
		o := telemetryOf(t, settings...)
		assert.Equal(t, []string{c.metrics, c.spans}, []string{o.Metrics.URL, o.Spans.URL}, c.settings)
	}
	o := telemetryOf(t, "OTEL_METRICS_EXPORTER=otlp")
	assert.Equal(t, []string{"http://localhost:4318/v1/metrics", ""}, []string{o.Metrics.URL, o.Spans.URL}, "OpenTelemetry's default")
	o = telemetryOf(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_METRICS_EXPORTER=none")
	assert.Equal(t, []string{"", "http://c/v1/traces"}, []string{o.Metrics.URL, o.Spans.URL})
	o = telemetryOf(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_TRACES_SAMPLER=always_off")
	assert.Empty(t, o.Spans.URL, "there would be none")
	o = telemetryOf(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_TRACES_EXPORTER=none", "OTEL_TRACES_SAMPLER=xray")
	assert.Empty(t, o.Spans.URL, "how they are sampled is another's affair")
}

func TestTelemetryDefaults(t *testing.T) {
	o := telemetryOf(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c")
	assert.Equal(t, &telemetry.Options{
		Metrics:  telemetry.Signal{URL: "http://c/v1/metrics"},
		Spans:    telemetry.Signal{URL: "http://c/v1/traces"},
		Sampler:  telemetry.Sampler{Sampled: 1},
		Resource: map[string]string{"service.name": "curfew", "service.instance.id": "i-1", "service.version": versionText()},
	}, o)
}

func TestTelemetryReadsEveryVariable(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	o := telemetryOf(t, "OTEL_SDK_DISABLED=False", "OTEL_METRICS_EXPORTER=otlp", "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20x%3D, x-tenant = a", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=k=v",
		"OTEL_EXPORTER_OTLP_TIMEOUT=2500", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT=1", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_METRICS_COMPRESSION=none",
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE="+ca,
		"OTEL_METRIC_EXPORT_INTERVAL=15000", "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.25",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=pre%2Cprod,service.instance.id=own,service.name=lost", "OTEL_SERVICE_NAME=deadlines")
	assert.NotNil(t, o.Spans.RootCAs)
	o.Spans.RootCAs = nil
	assert.Equal(t, &telemetry.Options{
		Metrics:        telemetry.Signal{URL: "http://c/v1/metrics", Header: http.Header{"Authorization": {"Bearer x="}, "X-Tenant": {"a"}}, Timeout: time.Millisecond},
		Spans:          telemetry.Signal{URL: "http://c/v1/traces", Header: http.Header{"K": {"v"}}, Timeout: 2500 * time.Millisecond, Gzip: true},
		MetricInterval: 15 * time.Second,
		Sampler:        telemetry.Sampler{Sampled: 1, Untraced: 0.25},
		Resource: map[string]string{
			"service.name": "deadlines", "service.instance.id": "own", "service.version": versionText(), "deployment.environment.name": "pre,prod",
		},
	}, o)
}

func TestTelemetryWrongValues(t *testing.T) {
	noCertificate := filepath.Join(t.TempDir(), "no.pem")
	require.NoError(t, os.WriteFile(noCertificate, []byte("none"), 0o600))
	for setting, allowed := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=c:4318":              "http:// or https:// URL",
		"OTEL_EXPORTER_OTLP_ENDPOINT=grpc://c:4317":       "http:// or https:// URL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://":      "http:// or https:// URL",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                "it takes http/protobuf",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/json":   "it takes http/protobuf",
		"OTEL_EXPORTER_OTLP_COMPRESSION=zstd":             "gzip or none",
		"OTEL_EXPORTER_OTLP_TIMEOUT=10s":                  "1 to 600000",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=0":             "1 to 600000",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere":         "no such file",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=" + noCertificate: "no certificate in it",
		"OTEL_METRICS_EXPORTER=prometheus":                "otlp or none",
		"OTEL_TRACES_EXPORTER=console":                    "otlp or none",
		"OTEL_METRIC_EXPORT_INTERVAL=60s":                 "1000 to 86400000",
		"OTEL_METRIC_EXPORT_INTERVAL=10":                  "1000 to 86400000",
		"OTEL_TRACES_SAMPLER=jaeger_remote":               "always_on, always_off or traceidratio",
		"OTEL_TRACES_SAMPLER_ARG=NaN":                     "0 to 1",
		"OTEL_TRACES_SAMPLER_ARG=2":                       "0 to 1",
		"OTEL_RESOURCE_ATTRIBUTES=a":                      "name=value",
		"OTEL_RESOURCE_ATTRIBUTES=a=%zz":                  "name=value",
		"OTEL_SDK_DISABLED=yes":                           "true or false",
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
	for _, setting := range []string{
		"OTEL_EXPORTER_OTLP_HEADERS=s3cret", "OTEL_EXPORTER_OTLP_HEADERS=a b=s3cret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=s3cret%0D%0AX: y",
		"OTEL_EXPORTER_OTLP_HEADERS==s3cret", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=grpc://ann:s3cret@c",
	} {
		setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", setting)
		_, err := loadConfig()
		name, _, _ := strings.Cut(setting, "=")
		assert.ErrorContains(t, err, name)
		assert.NotContains(t, err.Error(), "s3cret")
	}
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=https://ann:s3cret@c/x", "OTEL_EXPORTER_OTLP_HEADERS=a=s3cret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=b=s3cret", "OTEL_SERVICE_NAME=deadlines")
	code, out, errOut := runCommand(t, "config")
	require.Zero(t, code, errOut)
	assert.NotContains(t, out+errOut, "s3cret")
	for _, want := range []string{" https://c/x ", "********", " deadlines ", "OTEL_EXPORTER_OTLP_TRACES_HEADERS ", "OTEL_TRACES_SAMPLER "} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "OTEL_EXPORTER_OTLP_METRICS_HEADERS ", "it is not set")
}

func TestTelemetryNamesWhatIsIgnored(t *testing.T) {
	assert.Equal(t, []string{"OTEL_LOGS_EXPORTER", "OTEL_PROPAGATORS"}, ignoredTelemetry([]string{
		"OTEL_PROPAGATORS=b3", "OTEL_LOGS_EXPORTER=otlp", "OTEL_BSP_SCHEDULE_DELAY=", "OTEL_SERVICE_NAME=x", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c", "PATH=/bin",
	}))
}

func TestSidecarsMayHaveTelemetry(t *testing.T) {
	for name, known := range map[string]bool{
		"OTEL_EXPORTER_OTLP_ENDPOINT": true, "OTEL_EXPORTER_OTLP_TRACES_HEADERS": true, "OTEL_SERVICE_NAME": true, "OTEL_PROPAGATORS": false, "OTEL_METRICS_SERVICE_NAME": false,
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
	t.Setenv("OTEL_PROPAGATORS", "b3")
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
	assert.Contains(t, p.stderr.String(), "OTEL_PROPAGATORS")

	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Equal(t, []string{"dead_letter orders"}, c.spans)
	assert.Equal(t, "deadlines", c.service)
	for _, name := range []string{"curfew_deadline_lateness_seconds", "curfew_deadlines_fired_total", "curfew_messages_published_total", "curfew_otel_exported_total", "go_goroutines"} {
		assert.True(t, c.metrics[name], name)
	}
}
