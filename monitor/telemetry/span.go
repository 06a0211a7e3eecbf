package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"curfew/broker/deadline"
)

const (
	// maxTargets is the most queues that a span names of those that its message went to.
	maxTargets = 8
)

// Expired makes the spans of the expiries that the Sampler takes: it is a subscriber of a
// deadline.Stream, with deadline.WithTrace. It keeps nothing that they refer to and does not
// wait: spans for which there is no room are dropped and counted.
func (x *Exporter) Expired(batch []deadline.Expiry) {
	if x.traces == nil {
		return
	}
	for i := range batch {
		x.span(&batch[i])
	}
}

func (x *Exporter) span(e *deadline.Expiry) {
	publisher := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier(e.Trace)))
	if !x.sampler.samples(publisher) {
		return
	}
	if x.waiting.Add(1) > maxWaiting {
		x.waiting.Add(-1)
		x.spans.dropped.Inc()
		return
	}
	operation := "dead_letter"
	if e.Action == deadline.Dropped {
		operation = "expire"
	}
	due, arrived := e.Wall()
	begin := arrived.Add(-e.Lateness()) // its deadline, or earlier if a user expired it
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithTimestamp(begin.Time()), trace.WithAttributes(attributes(e, operation, due)...)}
	if publisher.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: publisher}))
	}
	_, span := x.tracer.Start(context.Background(), text(operation+" "+e.Queue), options...)
	span.End(trace.WithTimestamp(arrived.Time()))
}

// carrier lets the SDK read the trace context of a message.
type carrier deadline.Trace

func (c carrier) Get(key string) string {
	switch key {
	case "traceparent":
		return string(c.Parent)
	case "tracestate":
		return string(c.State)
	}
	return ""
}

func (c carrier) Keys() []string     { return []string{"traceparent", "tracestate"} }
func (c carrier) Set(string, string) {}

// attributes are those of the semantic conventions for messaging (in development) that a broker
// knows, and Curfew's own.
func attributes(e *deadline.Expiry, operation string, due deadline.Instant) []attribute.KeyValue {
	list := []attribute.KeyValue{
		// Clients call every AMQP 0-9-1 broker rabbitmq in their spans, so one search finds both.
		attribute.String("messaging.system", "rabbitmq"),
		attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.destination.name", text(e.Queue)),
		attribute.String("curfew.vhost", text(e.VHost)),
		attribute.String("curfew.deadline", due.String()),
		attribute.Float64("curfew.lateness_ms", e.Lateness().Seconds()*1e3),
		attribute.String("curfew.path", e.Path.String()),
		attribute.String("curfew.outcome", e.Action.String()),
	}
	if len(e.MessageID) > 0 {
		list = append(list, attribute.String("messaging.message.id", text(string(e.MessageID))))
	}
	if len(e.To) == 0 {
		return list
	}
	queues := make([]string, min(len(e.To), maxTargets))
	for i := range queues {
		queues[i] = text(e.To[i])
	}
	return append(list,
		attribute.String("curfew.dead_letter.exchange", text(e.Exchange)),
		attribute.String("curfew.dead_letter.routing_key", text(string(e.RoutingKey))),
		attribute.StringSlice("curfew.dead_letter.queues", queues),
	)
}

// text makes a name valid UTF-8, which protobuf demands: one bad byte from a publisher would
// cost all spans of a request.
func text(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
