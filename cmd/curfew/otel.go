package main

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"curfew/monitor/telemetry"
)

// of is the name of the variable for one signal alone; false: it is for all that is sent.
func (v *otelVariable) of(signal string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(v.name, otlpPrefix)
	return otlpPrefix + signal + "_" + rest, ok
}

// otelReader reads OpenTelemetry's variables.
type otelReader struct {
	options telemetry.Options
	errs    []error
}

// readTelemetry reads what is to be sent to OpenTelemetry, from the environment; nil: nothing. Nothing
// is said about variables while nothing is to be sent: they may be there for others.
func readTelemetry(instance string) (*telemetry.Options, []error) {
	disabled := strings.ToLower(otelValue(disabledName))
	if disabled == "true" {
		return nil, nil
	}
	r := &otelReader{options: telemetry.Options{Resource: map[string]string{
		"service.name": "curfew", "service.version": versionText(), "service.instance.id": instance,
	}}}
	o := &r.options
	on := false
	for i, s := range []*telemetry.Signal{&o.Metrics, &o.Spans} {
		if name := signalNames[i]; r.wanted(name.variable) {
			on = true
			r.signal(s, name.variable, name.path)
		}
	}
	if on && disabled != "false" && disabled != "" {
		r.refuse(disabledName, disabledName, disabled, errValue)
	}
	if on {
		r.whole()
	}
	if len(r.errs) > 0 || o.Metrics.URL == "" && o.Spans.URL == "" {
		return nil, r.errs
	}
	return o, nil
}

// otelValue is that of a variable; empty if it is not set.
func otelValue(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// wanted says whether a signal is to be sent.
func (r *otelReader) wanted(signal string) bool {
	name := "OTEL_" + signal + "_EXPORTER"
	switch value := otelValue(name); value {
	case "":
		return otelValue(otlpPrefix+signal+"_ENDPOINT") != "" || otelValue(otlpPrefix+"ENDPOINT") != ""
	case "otlp":
		return true
	case "none":
	default:
		r.refuse(name, name, value, errValue)
	}
	return false
}

// signal reads the variables of one.
func (r *otelReader) signal(s *telemetry.Signal, signal, path string) {
	r.endpoint(s, signal, path)
	for i := range otelVariables {
		v := &otelVariables[i]
		if v.each == nil {
			continue
		}
		source, _ := v.of(signal)
		value := otelValue(source)
		if value == "" {
			source, value = v.name, otelValue(v.name)
		}
		if value == "" {
			continue
		}
		if err := v.each(s, value); err != nil {
			r.refuse(v.name, source, value, err)
		}
	}
}

// endpoint: the one of a signal is taken as it is, to the common one a path is added.
func (r *otelReader) endpoint(s *telemetry.Signal, signal, path string) {
	const common = otlpPrefix + "ENDPOINT"
	source := otlpPrefix + signal + "_ENDPOINT"
	value := otelValue(source)
	whole := value != ""
	if !whole {
		source, value = common, otelValue(common)
	}
	if value == "" {
		value = defaultEndpoint
	}
	u, err := parseEndpoint(value)
	if err != nil {
		r.refuse(common, source, value, err)
		return
	}
	if !whole {
		u = u.JoinPath("v1", path)
	}
	s.URL = u.String()
}

// whole reads the variables of all that is sent.
func (r *otelReader) whole() {
	for i := range otelVariables {
		v := &otelVariables[i]
		if v.whole == nil {
			continue
		}
		if value := otelValue(v.name); value != "" {
			if err := v.whole(&r.options, value); err != nil {
				r.refuse(v.name, v.name, value, err)
			}
		}
	}
	r.sampler()
}

// sampler reads which messages get a span; when none do, spans are not sent.
func (r *otelReader) sampler() {
	if r.options.Spans.URL == "" {
		return
	}
	share := 1.0
	if text := otelValue(samplerShare); text != "" {
		var err error
		if share, err = strconv.ParseFloat(text, 64); err != nil || !(share >= 0 && share <= 1) {
			r.refuse(samplerShare, samplerShare, text, errValue)
		}
	}
	name := otelValue(samplerName)
	if name == "" {
		name = defaultSampler
	}
	sampler, known := telemetry.Samplers(share)[name]
	if !known {
		r.refuse(samplerName, samplerName, name, errValue)
	}
	r.options.Sampler = sampler
	if sampler == (telemetry.Sampler{}) {
		r.options.Spans = telemetry.Signal{}
	}
}

// refuse notes that the value of source, which is read as the variable name is, is not allowed.
func (r *otelReader) refuse(name, source, value string, err error) {
	i := slices.IndexFunc(otelVariables, func(v otelVariable) bool { return v.name == name })
	s := otelVariables[i].setting
	s.name = source
	if strings.HasSuffix(name, "_ENDPOINT") {
		value = credentials.ReplaceAllString(value, "$1")
	}
	err = s.refuse(value, err)
	if !slices.ContainsFunc(r.errs, func(e error) bool { return e.Error() == err.Error() }) { // both signals may have it
		r.errs = append(r.errs, err)
	}
}

// ignoredTelemetry are the variables of OpenTelemetry's that are set and that Curfew does not know.
func ignoredTelemetry(environ []string) (names []string) {
	known := otelNames()
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "OTEL_") && value != "" && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
