package telemetry

import (
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// Sampler is the share of expired messages that get a span, 0 to 1, by the trace context of
// their publisher. The zero value: none.
type Sampler struct {
	Sampled    float64 // of those whose publisher's trace is recorded
	NotSampled float64 // of those whose publisher's trace is not recorded
	Untraced   float64 // of those without a trace context
}

// Samplers are those that OTEL_TRACES_SAMPLER can name (OpenTelemetry: Environment Variable
// Specification). The link to the publisher counts as the parent. Some of them have a ratio.
func Samplers(ratio float64) map[string]Sampler {
	return map[string]Sampler{
		"always_on":                {1, 1, 1},
		"always_off":               {},
		"traceidratio":             {ratio, ratio, ratio},
		"parentbased_always_on":    {1, 0, 1},
		"parentbased_always_off":   {1, 0, 0},
		"parentbased_traceidratio": {1, 0, ratio},
	}
}

// samples decides for one message. publisher is invalid if the message has no trace context.
func (s *Sampler) samples(publisher trace.SpanContext) bool {
	share := s.Untraced
	switch {
	case publisher.IsSampled():
		share = s.Sampled
	case publisher.IsValid():
		share = s.NotSampled
	}
	return share > 0 && (share >= 1 || rand.Float64() < share)
}
