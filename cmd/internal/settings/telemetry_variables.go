package settings

import (
	"os"
	"slices"
	"strings"
)

// otelPrefix is the prefix of OpenTelemetry's variables.
const otelPrefix = "OTEL_"

// otelVariables are the variables that people need most. OpenTelemetry's SDK reads these and others;
// Curfew itself reads those that readTelemetry names.
var otelVariables = []variable{
	{name: endpointName, allow: "an http:// or https:// URL",
		desc: "the collector, which gets /v1/metrics and /v1/traces below it; empty: nothing is sent. OTEL_EXPORTER_OTLP_METRICS_ENDPOINT and " +
			"..._TRACES_ENDPOINT are whole addresses for one signal each; the next five variables can be set for one signal, too"},
	{name: "OTEL_EXPORTER_OTLP_HEADERS", secret: true, desc: "headers of each request, such as an authorization: name=value, separated by commas, values percent-encoded"},
	{name: "OTEL_EXPORTER_OTLP_TIMEOUT", initial: "10000", desc: "how long a request may take, in ms"},
	{name: "OTEL_EXPORTER_OTLP_COMPRESSION", initial: "none", desc: "compression of requests: gzip or none"},
	{name: protocolName, initial: "http/protobuf", allow: "http/protobuf", desc: "no gRPC, no JSON"},
	{name: "OTEL_EXPORTER_OTLP_CERTIFICATE", desc: "a file with the certificate authorities to verify the collector with, PEM; empty: the system's"},
	{name: "OTEL_METRICS_EXPORTER", allow: "otlp or none", desc: "whether metrics are sent; empty: they are if there is an endpoint for them"},
	{name: "OTEL_TRACES_EXPORTER", allow: "otlp or none", desc: "the same for the spans of expired messages"},
	{name: disabledName, initial: "false", allow: "true or false", desc: "true: nothing is sent, whatever else is set"},
	{name: "OTEL_METRIC_EXPORT_INTERVAL", initial: "60000", desc: "how often metrics are sent, in ms"},
	{name: samplerName, initial: defaultSampler, allow: "always_on, always_off or traceidratio, each also with the prefix parentbased_",
		desc: "which expired messages get a span; the publisher's traceparent counts as the parent. By default those whose publisher's trace is recorded"},
	{name: samplerShare, initial: "1", allow: "0 to 1", desc: "the share of traceidratio"},
	{name: "OTEL_RESOURCE_ATTRIBUTES", desc: "attributes of this Curfew, as name=value, separated by commas; without service.instance.id, that is CURFEW_INSTANCE"},
	{name: "OTEL_SERVICE_NAME", initial: "curfew", desc: "the attribute service.name"},
}

// groupedOtelVariables are otelVariables with the heading of their group.
func groupedOtelVariables() (list []variable) {
	for _, v := range otelVariables {
		v.group = "OpenTelemetry"
		list = append(list, v)
	}
	return list
}

// otherOtelVariables are OpenTelemetry's variables that are set and not among otelVariables.
func otherOtelVariables(environ []string) (list []variable) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		known := slices.ContainsFunc(otelVariables, func(v variable) bool { return v.name == name })
		if strings.HasPrefix(name, otelPrefix) && value != "" && !known {
			list = append(list, variable{name: name, desc: "of OpenTelemetry", secret: strings.HasSuffix(name, "_HEADERS")})
		}
	}
	slices.SortFunc(list, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return list
}

// displayOtel is the value of such a variable as it may be printed.
func displayOtel(v variable) string {
	value := otelValue(v.name)
	switch {
	case v.secret && value != "":
		return "********"
	case strings.HasSuffix(v.name, "_ENDPOINT"):
		return credentials.ReplaceAllString(value, "$1")
	}
	return value
}

// otelValue is the value of a variable; empty if it is not set.
func otelValue(name string) string { return strings.TrimSpace(os.Getenv(name)) }
