package settings

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/monitor/telemetry"
)

// telemetryOf reads the environment; an error fails the test.
func telemetryOf(t *testing.T, settings ...string) *telemetry.Options {
	t.Helper()
	setenv(t, append([]string{"CURFEW_INSTANCE=i-1"}, settings...)...)
	c, err := Load()
	require.NoError(t, err)
	return c.Telemetry
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
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc":              "want http/protobuf",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/json": "want http/protobuf",
		"OTEL_METRICS_EXPORTER=prometheus":              "otlp or none",
		"OTEL_TRACES_EXPORTER=console":                  "otlp or none",
		"OTEL_TRACES_SAMPLER=jaeger_remote":             "always_on, always_off or traceidratio",
		"OTEL_TRACES_SAMPLER_ARG=NaN":                   "0 to 1",
		"OTEL_TRACES_SAMPLER_ARG=2":                     "0 to 1",
		"OTEL_SDK_DISABLED=yes":                         "true or false",
	} {
		t.Run(setting, func(t *testing.T) {
			setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", setting)
			_, err := Load()
			var usage Error
			require.True(t, errors.As(err, &usage), "got %v", err)
			name, value, _ := strings.Cut(setting, "=")
			assert.ErrorContains(t, err, name+`: "`+value+`" is invalid`)
			assert.ErrorContains(t, err, allowed)
			assert.Equal(t, 1, strings.Count(err.Error(), "is invalid"), "once, though it is of two signals")
		})
	}
}

func TestTelemetryKeepsSecrets(t *testing.T) {
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=grpc://ann:s3cret@c")
	_, err := Load()
	assert.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
	assert.NotContains(t, err.Error(), "s3cret")
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT=https://ann:s3cret@c/x", "OTEL_EXPORTER_OTLP_HEADERS=a=s3cret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=b=s3cret", "OTEL_SERVICE_NAME=deadlines")
	c, err := Load()
	require.NoError(t, err)
	var table strings.Builder
	require.NoError(t, c.WriteTable(&table))
	out := table.String()
	assert.NotContains(t, out, "s3cret")
	for _, want := range []string{" https://c/x ", "********", " deadlines ", "OTEL_EXPORTER_OTLP_TRACES_HEADERS ", "OTEL_TRACES_SAMPLER "} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "OTEL_EXPORTER_OTLP_METRICS_HEADERS ", "it is not set")
}

func TestKnownTelemetry(t *testing.T) {
	for name, known := range map[string]bool{
		"OTEL_EXPORTER_OTLP_ENDPOINT": true, "OTEL_EXPORTER_OTLP_TRACES_HEADERS": true, "OTEL_SERVICE_NAME": true, "OTEL_BSP_SCHEDULE_DELAY": true, "CURFEW_OTEL": false,
	} {
		assert.Equal(t, known, Known(name), name)
	}
}
