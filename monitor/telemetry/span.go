package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// instantFormat is RFC 3339 with microseconds.
	instantFormat = "2006-01-02T15:04:05.000000Z07:00"
	// maxTargets is how many of the queues that a message went to its span names.
	maxTargets = 8

	dropped = "dropped" // an Outcome
)

// Expiry is a message that expired.
type Expiry struct {
	Deadline, Left time.Time
	VHost, Queue   string
	MessageID      []byte   // the property; may be empty
	Path           string   // who noticed: lazy, requeue, eager, manual
	Outcome        string   // what became of it: dropped, dead_lettered, parked
	Exchange       string   // the dead-letter exchange it went to
	RoutingKey     []byte   // with this key
	To             []string // into these queues
	// The headers of the message with these names; empty: it has none.
	TraceParent, TraceState []byte
}

// Expired makes the span of e, if the Sampler takes it. It keeps nothing that e refers to and
// does not wait: what there is no room for is dropped and counted.
func (x *Exporter) Expired(e *Expiry) {
	if x.traces == nil {
		return
	}
	publisher := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), (*carrier)(e)))
	if !x.sampler.samples(publisher) {
		return
	}
	if x.waiting.Add(1) > maxWaiting {
		x.waiting.Add(-1)
		x.spans.dropped.Inc()
		return
	}
	operation, begin := "dead_letter", e.Deadline
	if e.Outcome == dropped {
		operation = "expire"
	}
	if e.Left.Before(begin) { // somebody had it fire before its deadline
		begin = e.Left
	}
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithTimestamp(begin), trace.WithAttributes(e.attributes(operation)...)}
	if publisher.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: publisher}))
	}
	_, span := x.tracer.Start(context.Background(), text(operation+" "+e.Queue), options...)
	span.End(trace.WithTimestamp(e.Left))
}

// carrier lets the SDK read the trace context of a message.
type carrier Expiry

func (c *carrier) Get(key string) string {
	switch key {
	case "traceparent":
		return string(c.TraceParent)
	case "tracestate":
		return string(c.TraceState)
	}
	return ""
}

func (c *carrier) Keys() []string     { return []string{"traceparent", "tracestate"} }
func (c *carrier) Set(string, string) {}

// attributes are those of the semantic conventions for messaging (in development) that a broker
// can tell, and Curfew's own.
func (e *Expiry) attributes(operation string) []attribute.KeyValue {
	list := []attribute.KeyValue{
		// What speaks AMQP 0-9-1 is rabbitmq to clients' spans, and so to those who look for both.
		attribute.String("messaging.system", "rabbitmq"),
		attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.destination.name", text(e.Queue)),
		attribute.String("curfew.vhost", text(e.VHost)),
		attribute.String("curfew.deadline", e.Deadline.UTC().Format(instantFormat)),
		attribute.Float64("curfew.lateness_ms", max(e.Left.Sub(e.Deadline), 0).Seconds()*1e3),
		attribute.String("curfew.path", e.Path),
		attribute.String("curfew.outcome", e.Outcome),
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

// text makes a name what protobuf takes: of what a publisher may send, one byte that is not
// UTF-8 would cost all spans of a request.
func text(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
