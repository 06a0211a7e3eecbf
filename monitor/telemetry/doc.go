// Package telemetry sends to an OpenTelemetry collector, over OTLP/HTTP in protobuf, what
// Curfew's metrics say and a span for expired messages. Nothing is sent unless somebody
// asks for it.
//
//	registry ──every minute──────────────────────────────► sender ─► /v1/metrics
//	expiry ─► Samples? ─► Add ─► buffer ─► Run, in batches ─► sender ─► /v1/traces
//
// # Metrics
//
// Those of the registry, under the names they have there: counters as monotonic sums,
// gauges, histograms with their buckets, summaries. All are cumulative. A counter that
// says since when it counts begins there, any other with the exporter. A request that
// cannot be sent before the next is due is out of date and dropped; nothing is lost but
// the resolution.
//
// # Spans
//
// An expired message is a span "expire QUEUE" or "dead_letter QUEUE" of kind INTERNAL. It
// begins at the message's deadline and ends when the message had left its queue and stood
// where it went, so its duration is the lateness: that of a message that a consumer held
// past its deadline is as long as that. One that somebody had fire before its deadline
// has a span without duration.
//
// The span is the first of a trace of its own, and linked to the span in the header
// traceparent of the message, which is the publisher's: days may lie between the two, and
// the publisher's trace is complete without it. The message's headers stay as they are.
// A traceparent that is none (W3C: Trace Context) is taken for none; of its text nothing
// but the ids goes out, and of a tracestate at most 512 printable characters.
//
// Who gets a span is the Sampler's to say. What a million expiries in a minute add is
// bounded: 2048 spans wait while as many are sent, in requests of 512, and what finds no
// room is counted.
//
// # Guarantees
//
// Add never waits, and a message's way does not depend on the collector. While that is
// away, or answers 429, 502, 503 or 504, a request is tried again with growing pauses, of
// spans for a minute; any other refusal drops it. Nothing is kept over a restart. The
// metrics curfew_otel_* count what was taken, dropped and failed.
//
// # Why not the SDK
//
// OpenTelemetry's SDK for Go with its exporter makes the binary 6.4 MB larger, for
// everybody. What is used of it here would be its encoding, which is that of the
// generated types (go.opentelemetry.io/proto/slim/otlp: the same without gRPC) and of
// the protobuf library that Prometheus's client brings along. With all of this package
// the binary grows by 0.25 MB.
package telemetry
