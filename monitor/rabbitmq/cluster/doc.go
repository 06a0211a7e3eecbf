// Package cluster is access to a RabbitMQ cluster outside of this process: where its nodes
// are, which queues it has, what happens to them, and what Curfew does with each. It has the words for
// queues that the packages beside RabbitMQ share: their types, ranges of versions, statistics of times to live.
//
//	CURFEW_PRIMARY_URL ──► Address ──► Connect ──► a connection to the next node that answers
//	CURFEW_PRIMARY_API_URL ─────────► Inventory ──► Queue ─┐
//	CURFEW_WATCH ───────────────────► Watch ─────► Rule ──┴─► Decide ──► Decision
//	exchange amq.rabbitmq.event ────► Events ──► take a new Inventory, stand aside, ...
//
// # Guarantees
//
//   - It changes nothing in RabbitMQ. The only thing it declares is one exclusive queue
//     that receives events, curfew.tap.*, which goes with its connection.
//   - Decide refuses to keep a queue unless it is known that keeping does no harm.
//   - No error and no log entry holds a password.
//   - While no node can be reached, nothing fails: Connect goes on trying, 100 ms after the
//     first round and at most 6 s after any other.
//
// # What can be known
//
// With the management API and the tag monitoring: everything in Queue. Without: ready
// messages and the number of consumers of queues that a rule names exactly. AMQP has no
// way to ask for a queue's type or arguments. Queue.Unknown says what is not known, and
// Inventory.Notes says why.
//
// The list of queues without statistics is exact; the one with statistics is up to five
// seconds old and has no policy for a new queue. So the two are put together, and
// consumers come from a third list. It lacks those of the last five seconds, and a user
// with only the tag management sees no others' consumers in it.
//
// # Reasons to refuse
//
// Keeping a queue means holding all its messages unacknowledged. RabbitMQ counts only ready
// messages for max-length and for deletion with if-empty, renews x-expires when somebody
// consumes, and deletes an auto-delete queue when its last consumer goes. A single active
// consumer, an exclusive consumer and an application that polls with basic.get each rule
// out a second consumer. Only the statistics show such an application: the number of its
// reads has grown between two inventories. Returns count against the delivery limit of a
// quorum queue, except for basic.nack from 4.3 on. In 3.10 to 3.13 a delivery limit of -1
// is a limit, not the absence of one.
//
// # Sources
//
// RabbitMQ: URI Specification; URI Query Parameters; HTTP API; Event Exchange Plugin;
// Policies; Queue Length Limit; Quorum Queues (Poison Message Handling); Consumers.
//
// # Left to others
//
// Package keeper holds messages, package observe reports those that miss their deadlines, and
// package plan computes what an operator has to set up.
package cluster
