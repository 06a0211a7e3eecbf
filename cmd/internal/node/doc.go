// Package node opens, runs and stops the parts of Curfew. It is the only place that knows every part: the ops
// endpoints (/metrics, /healthz, /readyz), the audit and telemetry, the broker with its store, broker/server, the
// monitor and, on the sockets of API and dashboard, broker/management, /api/curfew and cmd/internal/dashboard. Serve
// starts them in this order and stops them in the opposite one.
//
//	starting ──recovered, listening──► ready ──context ended, or a part failed──► stopping ──► ended
//	 /readyz 503                        200                503
//
// A Node is what each Curfew has. What has the messages is its primary: the broker of this process (own_broker.go) or, with
// CURFEW_PRIMARY_URL, RabbitMQ (rabbitmq.go). Then no broker runs, the monitor only reports, and the management API and
// the pages of queues and dead letters are left out.
//
// SIGHUP reads the alerts file again. A mistake in it never ends the process, not even at a start (see
// monitor/incident).
//
// The parts take Options structs and know nothing of the environment, of signals or of flags.
package node
