// Package telemetry sends Curfew's metrics, and a span for each expired message, to an
// OpenTelemetry collector over OTLP/HTTP. It sends nothing unless it is configured to.
//
//	registry ──every minute──► Prometheus bridge ─► SDK ─► /v1/metrics
//	expiry ─► Sampler ─► Expired ─► SDK, in batches ──────► /v1/traces
//
// OpenTelemetry's SDK does the work. It reads its own variables (endpoint, headers, time-outs,
// compression, certificates, batches, resource attributes).
//
// # Metrics
//
// They are those of the registry, under the names that they have there: counters as monotonic
// sums, gauges, histograms with their buckets, summaries. All are cumulative, so a request that
// fails costs resolution and no count.
//
// # Spans
//
// An expired message is a span "expire QUEUE" or "dead_letter QUEUE" of kind INTERNAL. The span
// begins at the message's deadline. It ends when the message has left its queue and arrived where
// it goes, so its duration is the lateness. A message that a user fired before its deadline has a
// span without duration.
//
// The span is the first of a trace of its own. It has a link to the span in the message's header
// traceparent, which is the publisher's: days may lie between the two, and the publisher's trace
// is complete without it. The message's headers stay as they are. A traceparent that is not
// valid (W3C: Trace Context) counts as none. The SDK does not send the tracestate of a link.
//
// The Sampler decides which messages get a span. A million expiries in a minute add a bounded
// amount: 2048 spans wait at most, and further ones are dropped and counted.
//
// # Guarantees
//
// Expired never waits, and no message depends on the collector. While the collector
// is away, or answers 429, 502, 503 or 504, the SDK tries a request again, with growing pauses,
// for up to a minute. Any other refusal drops it. Nothing is kept over a restart. The metrics
// curfew_otel_* count what was taken, dropped and failed.
package telemetry
