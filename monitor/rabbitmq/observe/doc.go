// Package observe says which messages of a RabbitMQ miss their deadlines, when, by how
// much, and which will. It touches no message.
//
//	                    ┌──► orders ──► consumers
//	publisher ─► exchange         │ how many are ready? (passive declare)
//	                    └──► curfew.tap.* ──► line ──► missed, expired, forecast
//
// A tap is a queue bound like the one that is watched, so it receives a copy of what
// enters. Since a queue hands its messages out in order, those that wait are the last
// ones: of E messages that have entered, message k (from 0) is there if and only if
// E-1-k < ready. That is asked at each deadline, and it is all the arithmetic there is
// (line, which is pure).
//
// # States of a message
//
//	entered ──deadline──► there? ──no──► in time
//	                        │ yes
//	                        ▼
//	                      missed ──its place is given up──► expired, late by so much
//
// RabbitMQ hands out no expired message, so one that was there after its deadline and is
// there no more has expired. Its lateness is known to 250 ms, and to 20 ms while others
// are due.
//
// # Guarantees
//
//   - It consumes nothing but its taps, and declares nothing else.
//   - A tap holds 100,000 messages for at most a minute, and drops the oldest. It is
//     exclusive and transient, and goes with its connection, however that ends. What a tap
//     loses costs knowledge, never a message: counting starts over then (State.Restarts).
//   - Memory is bounded: a million deadlines for each queue. What there is no room for is
//     counted.
//   - A queue of which the tap cannot tell the truth is not tapped. State.Reason says why,
//     and its totals are observed.
//
// # How exact it is
//
// Beside a slow consumer on RabbitMQ 3.10 (TestTapAccuracy), of the messages that expired
// about 97 in 100 are reported as missed, and of those that were consumed no more than a
// few in a thousand. A message that is not reported was at the head of its queue at its
// deadline: whether it expired or was consumed at that moment cannot be seen from outside,
// unless there are no consumers. A message that was there before the tap is counted as ready and otherwise
// unknown. Messages that are requeued out of order make the count right about how many
// wait and wrong about which; so do priorities on quorum queues from 4.0 on, which the
// arguments of the queue do not show.
//
// Purging a queue looks like expiry for what had missed its deadline, and like
// consumption for the rest. The time on the way to the tap is added to each deadline, so a
// deadline may be seen late, but never early.
//
// # What it costs
//
// One more copy of each message, in memory only, and one passive declare a second and
// queue, up to fifty while messages are due. A message that the exchange routed nowhere
// before is still routed nowhere, since the tap has the bindings of a queue that is there;
// between the deletion of a binding and that of the tap's (at once where events are told,
// else within 5 s), a message may be taken for routed.
//
// # Rights
//
// To configure, write and read curfew.tap.*, to read the tapped exchanges, and the tag
// monitoring. From RabbitMQ 4.3 on a passive declare takes some permission on the queue, and
// that to write is enough. Without one, single messages are not reported: the queue is named
// with this reason, and its totals are those of the management API, up to half a minute old.
//
// # Left to others
//
// An Observer is shown which queues there are and which to observe (View). Metrics,
// alerts, audit and the dashboard belong to the program that runs the Observer; what they
// take is Missed.Expiry and State.
package observe
