package settings

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"curfew/monitor/telemetry"
)

const (
	otlpPrefix     = "OTEL_EXPORTER_OTLP_"
	endpointName   = otlpPrefix + "ENDPOINT"
	protocolName   = otlpPrefix + "PROTOCOL"
	disabledName   = "OTEL_SDK_DISABLED"
	samplerName    = "OTEL_TRACES_SAMPLER"
	samplerShare   = samplerName + "_ARG"
	defaultSampler = "parentbased_always_off"
)

// otelReader reads the variables of OpenTelemetry that decide what is sent.
type otelReader struct{ errs []error }

// readTelemetry reads from the environment what to send to OpenTelemetry; nil: nothing. If nothing
// is sent, no variable is refused, since they may be meant for another application.
func readTelemetry(instance string) (*telemetry.Options, []error) {
	if strings.EqualFold(otelValue(disabledName), "true") {
		return nil, nil
	}
	r := &otelReader{}
	o := &telemetry.Options{Instance: instance, Metrics: r.wanted("METRICS"), Spans: r.wanted("TRACES")}
	if o.Spans {
		o.Sampler = r.sampler()
		o.Spans = o.Sampler != telemetry.Sampler{} || len(r.errs) > 0
	}
	if !o.Metrics && !o.Spans {
		return nil, r.errs
	}
	r.check(disabledName, disabledName, func(value string) bool { return strings.EqualFold(value, "false") })
	for _, signal := range []string{"", "METRICS_", "TRACES_"} {
		r.check(endpointName, otlpPrefix+signal+"ENDPOINT", isEndpoint)
		r.check(protocolName, otlpPrefix+signal+"PROTOCOL", func(value string) bool { return value == "http/protobuf" })
	}
	return o, r.errs
}

// wanted reports whether to send a signal.
func (r *otelReader) wanted(signal string) bool {
	name := "OTEL_" + signal + "_EXPORTER"
	r.check(name, name, func(value string) bool { return value == "otlp" || value == "none" })
	if value := otelValue(name); value != "" {
		return value == "otlp"
	}
	return otelValue(otlpPrefix+signal+"_ENDPOINT") != "" || otelValue(endpointName) != ""
}

// sampler reads the rule that decides which messages get a span.
func (r *otelReader) sampler() telemetry.Sampler {
	share := 1.0
	r.check(samplerShare, samplerShare, func(value string) bool {
		var err error
		share, err = strconv.ParseFloat(value, 64)
		return err == nil && share >= 0 && share <= 1
	})
	samplers := telemetry.Samplers(share)
	r.check(samplerName, samplerName, func(value string) bool {
		_, known := samplers[value]
		return known
	})
	if name := otelValue(samplerName); name != "" {
		return samplers[name]
	}
	return samplers[defaultSampler]
}

// check refuses the value of source if it is set and invalid. name is the variable in the list that
// describes what is valid.
func (r *otelReader) check(name, source string, allowed func(value string) bool) {
	value := otelValue(source)
	if value == "" || allowed(value) {
		return
	}
	i := slices.IndexFunc(otelVariables, func(v variable) bool { return v.name == name })
	v := otelVariables[i]
	v.name = source
	r.errs = append(r.errs, v.refuse(credentials.ReplaceAllString(value, "$1"), errValue))
}

// isEndpoint reports whether value is the URL of a collector. The SDK would use localhost instead of
// a URL that it cannot parse.
func isEndpoint(value string) bool {
	u, err := url.Parse(value)
	return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}
