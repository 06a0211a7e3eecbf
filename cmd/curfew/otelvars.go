package main

import (
	"os"
	"slices"
	"strings"
)

// otelPrefix begins all of OpenTelemetry's variables.
const otelPrefix = "OTEL_"

// otelVariables are those that people need most. OpenTelemetry's SDK reads them and those that
// are not here; Curfew reads what readTelemetry names.
var otelVariables = []setting{
	{name: endpointName, allow: "an http:// or https:// URL",
		desc: "the collector, which gets /v1/metrics and /v1/traces below it; empty: nothing is sent. OTEL_EXPORTER_OTLP_METRICS_ENDPOINT and " +
			"..._TRACES_ENDPOINT are whole addresses, each of one signal; the next five can be set in the same way"},
	{name: "OTEL_EXPORTER_OTLP_HEADERS", secret: true, desc: "of each request, such as an authorization: name=value, with commas between, values percent-encoded"},
	{name: "OTEL_EXPORTER_OTLP_TIMEOUT", initial: "10000", desc: "how long a request may take, in ms"},
	{name: "OTEL_EXPORTER_OTLP_COMPRESSION", initial: "none", desc: "of requests: gzip or none"},
	{name: protocolName, initial: "http/protobuf", allow: "http/protobuf", desc: "no gRPC, no JSON"},
	{name: "OTEL_EXPORTER_OTLP_CERTIFICATE", desc: "a file with the authorities that the collector's certificate may be from, PEM; empty: the system's"},
	{name: "OTEL_METRICS_EXPORTER", allow: "otlp or none", desc: "whether metrics are sent; empty: if there is an endpoint for them"},
	{name: "OTEL_TRACES_EXPORTER", allow: "otlp or none", desc: "the same for the spans of expired messages"},
	{name: disabledName, initial: "false", allow: "true or false", desc: "true: nothing is sent, whatever else is set"},
	{name: "OTEL_METRIC_EXPORT_INTERVAL", initial: "60000", desc: "how often metrics are sent, in ms"},
	{name: samplerName, initial: defaultSampler, allow: "always_on, always_off or traceidratio, each also with parentbased_ before it",
		desc: "which expired messages get a span; the publisher's traceparent counts as the parent. By default those whose publisher's trace is recorded"},
	{name: samplerShare, initial: "1", allow: "0 to 1", desc: "the share that traceidratio takes"},
	{name: "OTEL_RESOURCE_ATTRIBUTES", desc: "of this Curfew, as name=value with commas between; without one service.instance.id is CURFEW_INSTANCE"},
	{name: "OTEL_SERVICE_NAME", initial: "curfew", desc: "the attribute service.name"},
}

// otelSettings are the variables as they are listed for people.
func otelSettings() (list []setting) {
	for _, s := range otelVariables {
		s.group = "OpenTelemetry"
		list = append(list, s)
	}
	return list
}

// otherOtelSettings are OpenTelemetry's variables that are set and not among otelVariables.
func otherOtelSettings(environ []string) (list []setting) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		known := slices.ContainsFunc(otelVariables, func(s setting) bool { return s.name == name })
		if strings.HasPrefix(name, otelPrefix) && value != "" && !known {
			list = append(list, setting{name: name, desc: "of OpenTelemetry", secret: strings.HasSuffix(name, "_HEADERS")})
		}
	}
	slices.SortFunc(list, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	return list
}

// shownTelemetry is the value of such a variable, fit to be printed.
func shownTelemetry(s setting) string {
	value := otelValue(s.name)
	switch {
	case s.secret && value != "":
		return "********"
	case strings.HasSuffix(s.name, "_ENDPOINT"):
		return credentials.ReplaceAllString(value, "$1")
	}
	return value
}

// otelValue is that of a variable; empty if it is not set.
func otelValue(name string) string { return strings.TrimSpace(os.Getenv(name)) }
