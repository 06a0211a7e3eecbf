// Package observe reports which messages of RabbitMQ miss their deadlines, when, by how much, and which will. It touches no message.
//
//	                    ┌──► orders ──► consumers
//	publisher ─► exchange         │ how many are ready? (passive declare)
//	                    └──► curfew.tap.* ──► line ──► missed, expired, forecast
//
// A tap is a queue with the same bindings as the watched queue, so it receives a copy of each message that enters. Since a queue delivers its
// messages in order, those that still wait are the last ones: of E messages that have entered, message k (from 0) still waits if and only if E-1-k <
// ready. That is checked at each deadline, and there is no other arithmetic (line, which is pure).
//
// # States of a message
//
//	entered ──deadline──► waits? ──no──► in time
//	                        │ yes
//	                        ▼
//	                      missed ──it leaves the queue──► expired, with its lateness
//
// RabbitMQ delivers no expired message, so a message that still waited after its deadline and has left since has expired. Its lateness is known to
// within 250 ms, and to within 20 ms while others are due.
//
// # Guarantees
//
//   - It consumes nothing but its taps, and declares nothing else.
//   - A tap holds 100,000 messages for at most a minute, and drops the oldest. It is exclusive and transient, and is deleted with its connection,
//     however that ends. When a tap loses copies, no message is lost: counting starts over (State.Restarts).
//   - Memory is bounded: a million deadlines for each queue. Deadlines beyond that are only counted.
//   - A queue is not tapped if a tap would give a wrong picture of it. State.Reason says why, and its totals are observed.
//
// # How exact it is
//
// With a slow consumer on RabbitMQ 3.10 (TestTapAccuracy), about 97 in 100 of the messages that expired are reported as missed, and at most a few in
// a thousand of those that were consumed. A message that expired unreported was at the head of its queue at its deadline: whether it expired or was
// consumed at that moment cannot be seen from outside, unless there are no consumers. Counts.Unsure says how many such messages there were. A message
// that entered before the tap is counted as ready, and nothing else is known about it. When messages are requeued out of order, the count is right
// about how many wait, but wrong about which; the same goes for priorities on quorum queues from 4.0 on, which the arguments of the queue do not
// show.
//
// Purging a queue looks like expiry for messages that had missed their deadlines, and like consumption for the rest. Each deadline includes the time
// on the way to the tap, so a deadline may be seen late, but never early.
//
// # What it costs
//
// One more copy of each message, in memory only, and one passive declare per second and tapped queue, up to fifty while messages are due. A message that the
// exchange could not route before is still unroutable, since the tap has the bindings of an existing queue. After a binding is deleted, the tap's own
// goes at once where RabbitMQ publishes events, else within 5 s; until then a message may count as routed.
//
// # Rights
//
// To configure, write and read curfew.tap.*, to read the tapped exchanges, and the tag monitoring. From RabbitMQ 4.3 on, a passive declare needs some
// permission on the queue; permission to write is enough. Without one, single messages are not reported: the queue is listed with this reason, and
// its totals are those of the management API, up to half a minute old.
//
// # Left to others
//
// The caller shows an Observer which queues exist and which to observe (View). Metrics, alerts, audit, forecasts and the dashboard belong to the
// program that runs the Observer; they take what Options.Expired is told, Survey and State.
package observe
