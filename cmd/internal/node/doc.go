// Package node opens, runs and stops the parts of Curfew. It is the only place that knows every part: the ops
// endpoints (/metrics, /healthz, /readyz), the audit and telemetry, the broker with its store, broker/server, the
// monitor and, on the sockets of API and dashboard, broker/management, /api/curfew and monitor/dashboard. Serve
// starts them in this order and stops them in the opposite one.
//
//	starting ──recovered, listening──► ready ──context ended, or a part failed──► stopping ──► ended
//	 /readyz 503                        200                503
//
// With CURFEW_PRIMARY_URL no broker runs: monitor/rabbitmq is the primary of the monitor, and the management API and
// the pages of queues and dead letters are left out.
//
// SIGHUP reads the alerts file again. A mistake in it never ends the process, not even at a start (see
// monitor/alert).
//
// The parts take Options structs and know nothing of the environment, of signals or of flags.
package node
