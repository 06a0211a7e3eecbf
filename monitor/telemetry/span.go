package telemetry

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Flags of spans and links beside those of W3C (OTLP: trace.proto, SpanFlags).
const (
	w3cSampled = 0x001
	knowsWhere = 0x100 // whether the parent, or what is linked to, is in another process
	elsewhere  = 0x200 // it is
)

// instantFormat is RFC 3339 with microseconds.
const instantFormat = "2006-01-02T15:04:05.000000Z07:00"

// newSpan makes the span of e, the first of a trace of its own.
func newSpan(e *Expiry) *tracepb.Span {
	operation := "dead_letter"
	if e.Outcome == dropped {
		operation = "expire"
	}
	begin := e.Deadline
	if e.Left.Before(begin) { // somebody had it fire before
		begin = e.Left
	}
	span := &tracepb.Span{
		TraceId: newID(16), SpanId: newID(8), Flags: w3cSampled | knowsWhere,
		Name: valid(operation + " " + e.Queue), Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanos(begin), EndTimeUnixNano: nanos(e.Left),
		Attributes: e.attributes(operation),
	}
	if p, ok := parseParent(e.TraceParent); ok {
		span.Links = []*tracepb.Span_Link{{
			TraceId: p.trace[:], SpanId: p.span[:], TraceState: parseState(e.TraceState), Flags: uint32(p.flags) | knowsWhere | elsewhere,
		}}
	}
	return span
}

// attributes are those of the semantic conventions for messaging (in development) that
// a broker can tell, and Curfew's own.
func (e *Expiry) attributes(operation string) []*commonpb.KeyValue {
	list := []*commonpb.KeyValue{
		// What speaks AMQP 0-9-1 is rabbitmq to clients' spans, and so to those who look for both.
		textAttribute("messaging.system", "rabbitmq"),
		textAttribute("messaging.operation.name", operation),
		textAttribute("messaging.destination.name", e.Queue),
		textAttribute("curfew.vhost", e.VHost),
		textAttribute("curfew.deadline", e.Deadline.UTC().Format(instantFormat)),
		attribute("curfew.lateness_ms", &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: max(e.Left.Sub(e.Deadline), 0).Seconds() * 1e3}}),
		textAttribute("curfew.path", e.Path),
		textAttribute("curfew.outcome", e.Outcome),
	}
	if len(e.MessageID) > 0 {
		list = append(list, textAttribute("messaging.message.id", string(e.MessageID)))
	}
	if len(e.To) == 0 {
		return list
	}
	queues := &commonpb.ArrayValue{}
	for _, name := range e.To {
		queues.Values = append(queues.Values, textValue(name))
	}
	return append(list,
		textAttribute("curfew.dead_letter.exchange", e.Exchange),
		textAttribute("curfew.dead_letter.routing_key", string(e.RoutingKey)),
		attribute("curfew.dead_letter.queues", &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: queues}}),
	)
}

// newID makes an id of n bytes, not all of them zero.
func newID(n int) []byte {
	id := make([]byte, n)
	for i := 0; i < n; i += 8 {
		binary.BigEndian.PutUint64(id[i:], rand.Uint64())
	}
	id[0] |= 1
	return id
}

func nanos(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

func attribute(key string, value *commonpb.AnyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: value}
}

func textAttribute(key, value string) *commonpb.KeyValue { return attribute(key, textValue(value)) }

func textValue(text string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: valid(text)}}
}

// valid makes text what protobuf takes: of what a publisher may send, one byte that is
// not UTF-8 would cost all spans of a request.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// spanRequest is the request that carries spans of expired messages.
func (x *Exporter) spanRequest(expired []Expiry) proto.Message {
	spans := make([]*tracepb.Span, len(expired))
	for i := range expired {
		spans[i] = newSpan(&expired[i])
	}
	return &collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: x.resource, ScopeSpans: []*tracepb.ScopeSpans{{Scope: x.scope, Spans: spans}},
	}}}
}

// rejectedSpans reads the answer to it. What cannot be read rejects nothing.
func rejectedSpans(answer []byte) (rejected int64, why string) {
	var a collectorpb.ExportTraceServiceResponse
	_ = proto.Unmarshal(answer, &a)
	return a.GetPartialSuccess().GetRejectedSpans(), a.GetPartialSuccess().GetErrorMessage()
}
