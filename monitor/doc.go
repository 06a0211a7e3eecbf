// Package monitor reports what expires: in Curfew's own queues, or beside a RabbitMQ in its queues.
//
//	                       ┌─► counters and lateness (metrics, pages, status)
//	Source.Expiries ───────┼─► recent expiries
//	                       └─► alerts: missed, late, parked
//	Source, once a second ───► forecast: what will expire ─► alerts: at risk
//	Pending ─────────────────► how many deadlines wait, and until when
//
// What counts as late is decided in one place, deadline.Expiry.Late, and counted here for all: the metric
// curfew_deadlines_failed_total, the histogram curfew_deadline_lateness_seconds, status and the pages. Package history, which
// subscribes to the same stream, goes by the same rule.
//
// # Loops
//
// Run runs loops, those of package schedule among them. Each is a goroutine that ends only with the context of Run. One that fails
// or panics is started again after a pause; until then its heartbeat metric does not change.
//
// # Left to others
//
// Package schedule fires deadlines. Package alert notifies people, audit and history write down. The monitor keeps nothing over a
// restart. Bodies and headers never come here.
package monitor
