// Package monitor reports what expires: in Curfew's own queues, or beside RabbitMQ in its queues.
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
// # Forecast
//
// predict.go says which of the messages that wait in a queue will expire.
//
// A queue is a line that is served at some rate. From the head on, a message is reached when
// those before it have been served. If its deadline has passed by then, it expires instead
// and takes no service. A prediction needs two things: the messages in line (a sample is
// enough, so a queue of ten million costs as much as one of a thousand) and how fast the
// line moves (Meter).
//
//	head                                               tail
//	 │ d=9s  d=2s  d=1h  d=3s  ... every Step-th message ... │
//	 ▼
//	reached at 1 s: served   2 s: expired   2 s: served   ...
//
// Served means handed to a consumer: what a consumer holds at its deadline does not expire.
// Messages yet to come are behind all that wait now, so they make no difference unless they have
// a higher priority. Consumers go on as they did in the last seconds. Meter, Predict and
// Outlook are pure: they have no clock, lock or goroutine.
//
// # Loops
//
// Run runs loops, those of package schedule among them. Each is a goroutine that ends only with the context of Run. One that fails
// or panics is started again after a pause; until then its heartbeat metric does not change.
//
// # Left to others
//
// Package schedule fires deadlines. Package incident notifies people, audit and history write down. The monitor keeps nothing over a
// restart. Bodies and headers never come here.
package monitor
