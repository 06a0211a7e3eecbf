package main

import (
	"strings"

	"curfew/monitor/telemetry"
)

// otelVariable is a variable of OpenTelemetry's that Curfew obeys (OpenTelemetry: Environment
// Variable Specification, OTLP Exporter Configuration). Set to nothing it is not set.
type otelVariable struct {
	setting // without a field
	// At most one of these puts a value in force: of all that is sent, or of one signal. The error is
	// errValue, or a reason.
	whole func(o *telemetry.Options, value string) error
	each  func(s *telemetry.Signal, value string) error
}

const (
	// otlpPrefix begins the variables of a signal. METRICS_ or TRACES_ may follow; what is set so
	// counts more.
	otlpPrefix      = "OTEL_EXPORTER_OTLP_"
	disabledName    = "OTEL_SDK_DISABLED"
	samplerName     = "OTEL_TRACES_SAMPLER"
	samplerShare    = samplerName + "_ARG"
	defaultSampler  = "parentbased_always_off"
	defaultEndpoint = "http://localhost:4318"
	pairsAllowed    = "name=value with commas between, values percent-encoded"
)

// otelVariables are all there are, in the order in which they count: later ones more. Those without a
// function are read by readTelemetry itself.
var otelVariables = []otelVariable{
	{setting: setting{name: otlpPrefix + "ENDPOINT", allow: "an http:// or https:// URL",
		desc: "the collector, which gets /v1/metrics and /v1/traces below it; empty: nothing is sent. OTEL_EXPORTER_OTLP_METRICS_ENDPOINT and " +
			"..._TRACES_ENDPOINT are whole addresses, of one of both; the next five can be set so too"}},
	{setting: setting{name: otlpPrefix + "HEADERS", allow: pairsAllowed, secret: true, desc: "of each request, such as an authorization"}, each: readHeaders},
	{setting: setting{name: otlpPrefix + "TIMEOUT", initial: "10000", allow: "1 to 600000", desc: "how long a request may take, in ms"}, each: readTimeout},
	{setting: setting{name: otlpPrefix + "COMPRESSION", initial: "none", allow: "gzip or none", desc: "of requests"}, each: readCompression},
	{setting: setting{name: otlpPrefix + "PROTOCOL", initial: "http/protobuf", allow: "http/protobuf", desc: "no gRPC, no JSON"}, each: readProtocol},
	{setting: setting{name: otlpPrefix + "CERTIFICATE", allow: "a file, PEM", desc: "authorities that the collector's certificate may be from; empty: the system's"}, each: readCertificate},
	{setting: setting{name: "OTEL_METRICS_EXPORTER", allow: "otlp or none", desc: "whether metrics are sent; empty: if there is an endpoint for them"}},
	{setting: setting{name: "OTEL_TRACES_EXPORTER", allow: "otlp or none", desc: "likewise the spans of expired messages"}},
	{setting: setting{name: disabledName, initial: "false", allow: "true or false", desc: "true: nothing is sent, whatever else is set"}},
	{setting: setting{name: "OTEL_METRIC_EXPORT_INTERVAL", initial: "60000", allow: "1000 to 86400000", desc: "how often metrics are sent, in ms"}, whole: readInterval},
	{setting: setting{name: samplerName, initial: defaultSampler, allow: "always_on, always_off or traceidratio, each also with parentbased_ before it",
		desc: "which expired messages get a span; the publisher's traceparent counts as the parent. By default those whose publisher's trace is recorded"}},
	{setting: setting{name: samplerShare, initial: "1", allow: "0 to 1", desc: "the share that traceidratio takes"}},
	{setting: setting{name: "OTEL_RESOURCE_ATTRIBUTES", allow: pairsAllowed, desc: "of this Curfew; without one service.instance.id is CURFEW_INSTANCE"}, whole: readResource},
	{setting: setting{name: "OTEL_SERVICE_NAME", initial: "curfew", allow: "text", desc: "the attribute service.name"}, whole: readServiceName},
}

// signalNames are what stands in a variable for one signal, and in the path of an endpoint.
var signalNames = []struct{ variable, path string }{{"METRICS", "metrics"}, {"TRACES", "traces"}}

// otelNames are the names of the variables, those of a signal included.
func otelNames() (names []string) {
	for _, v := range otelVariables {
		names = append(names, v.name)
		for _, s := range signalNames {
			if own, ok := v.of(s.variable); ok {
				names = append(names, own)
			}
		}
	}
	return names
}

// otelSettings are the variables as they are listed for people.
func otelSettings() (list []setting) {
	for _, v := range otelVariables {
		v.group = "OpenTelemetry"
		list = append(list, v.setting)
	}
	return list
}

// otelOwnSettings are those of one signal that are set.
func otelOwnSettings() (list []setting) {
	for _, v := range otelVariables {
		for _, s := range signalNames {
			if own, ok := v.of(s.variable); ok && otelValue(own) != "" {
				list = append(list, setting{name: own, desc: "likewise, of " + s.path + " alone", secret: v.secret})
			}
		}
	}
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
