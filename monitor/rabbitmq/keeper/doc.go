// Package keeper makes the deadlines of one queue of RabbitMQ exact, without a message ever leaving RabbitMQ.
//
// RabbitMQ expires messages at the head of a queue only: a message with a short TTL behind one with a long TTL stays
// until the other has gone (RabbitMQ: Time-To-Live and Expiration, "Caveats"). A Keeper consumes the queue with manual
// acknowledgement and holds everything. At a message's deadline it gives that one back with basic.nack(requeue). All
// messages before it are held, so it is at the head, and RabbitMQ itself expires it: with its own reason, death history,
// dead-letter strategy and metrics. Bodies are hashed and dropped.
//
// # Guarantees
//
//   - The keeper never has the only copy of a message: whatever happens to it, its channels close and RabbitMQ has the
//     messages again, most with the redelivered flag. It acknowledges nothing and publishes nothing.
//   - No message expires early. RabbitMQ decides; a deadline is receipt plus TTL, and receipt comes after enqueueing. A
//     message that comes back because the clocks differ is given back again after 2, 16 and 128 ms. After that
//     its age counts as unknown.
//   - Order. A release gives messages back in the order of the queue. After an uncontrolled end (a lost connection, a
//     killed keeper) RabbitMQ keeps the order within a channel only. A quorum queue takes back what it has just delivered
//     to a consumer that is cancelled at that moment. The keeper waits for that before it starts the next consumer. Even
//     so, a few of the messages that are published during a roll may change places: those that the queue delivers in
//     place of messages that have expired. A quorum queue with a delivery limit takes back messages that are returned
//     together in any order (seen on 3.10.8).
//   - Other consumers come first. When the keeper sees one, it gives everything back and has no consumer until the other
//     has gone: a low consumer priority alone does not protect a consumer with a small prefetch.
//
// Late messages: a message of unknown age was in the queue before the keeper came, and nobody remembers it. It is given back in even steps of
// probeShare of its TTL, at most every half second together with its stretch, and no longer once a message of the
// stretch has only one return left to spend. A message that arrives while a consumer is being replaced is late by a few round trips.
//
// # Stretches
//
// RabbitMQ scans a channel's unacked messages for each nack, and deals messages out in turn to several consumers. So
// one channel at a time consumes, up to Options.PerChannel messages; then its consumer is cancelled, the channel keeps
// what it holds, and the next channel goes on. What one channel holds is a stretch of the queue. To roll stretches
// is to give them back and take them again at the same place. The keeper does so before consumer_timeout (RabbitMQ:
// Consumers, "Delivery Acknowledgement Timeout"), to probe messages of unknown age, and to merge sparse neighbours.
//
// # A node that goes down
//
// Before 4.3 a quorum queue takes back at once what live consumers on that node held. What cancelled consumers held it
// takes back only when the node is up again and the queue has another leader after that (rabbit_fifo: a lost connection
// concerns consumers that are up). Until then nobody can get these messages, and they are late; none is lost. The cancelled
// consumers are the full stretches of a keeper that was connected to the node. From 4.3 on the queue waits for a lost node,
// a minute by default, and then takes everything back.
//
// So on 3.x no stretch is left with a cancelled consumer: after the cancel the keeper consumes again under the same tag.
// The queue then counts everything that the consumer held as held by a live one. The new consumer has no credit (the
// argument x-credit), so the queue sends it nothing more, even after it has given messages back. 4.0 to 4.2 do not know
// x-credit from AMQP 0-9-1, so there what full stretches hold is stranded if the node of the connection goes down: package monitor/rabbitmq
// reports that (stranded.go).
//
// A queue goes on counting the consumers of a lost node until the node is back. On 3.10 it sometimes also counts those of a connection
// that RabbitMQ closed itself because a consumer asked while the queue had no leader. The keeper goes by their number: as many
// as it had, or as the keeper before it had left, count as left behind until the list of consumers names an application's (Facts.Others).
//
// What remains on 3.x is the moment between the two commands, and 20 ms where the consumer was not full: before a roll and a release.
//
// # States
//
//	            nobody else consumes                another consumer
//	observing ─────────────────────► keeping ─────────────────────────► releasing ──► standing aside
//	    ▲                               ▲                                   │               │
//	    │ connection lost, queue gone   └───────────────────────────────────┼───────────────┘
//	    │                                 10 s after the others left,       │
//	    └──── from each state             twice as long if they return      │
//	                                      within a minute, up to 5 min      │
//	                                                                        ├──► refused  by a fact, a limit or a
//	                                                                        │             missing permission
//	                                                                        └──► stopped
//
// Each state has a reason. Refused ends by itself when the fact, the number of messages or the permission changes.
//
// # What is refused
//
// cluster.Decide has the settings that forbid holding messages, with the reasons: no keeper runs then. The keeper refuses
// more than Options.MaxMessages or MaxBytes, mostly messages without TTL, more than a quarter of the delivery limit spent
// (RabbitMQ: Quorum Queues, "Poison Message Handling"; 3.x and 4.0 to 4.2 count each return, from 4.3 on a nack does not
// count).
// Two things cannot be seen from here. Applications that poll with basic.get find nothing while messages are held. Only
// RabbitMQ's statistics show them, so package cluster watches these and refuses the queue. And queue.delete with if-empty
// deletes a classic queue whose messages are held: the operator has to know that.
//
// # Special cases, and whom they serve
//
//   - Probes (roll.go): whoever keeps a queue without Redis, or after Redis has lost its data. Without them a message whose age nobody
//     remembers would stay for a whole TTL more.
//   - Hints (judge): the same, where publishers set a timestamp. Such a message is given back when it should be due.
//   - Generations (roll.go): delays of more than half of the consumer_timeout, 15 minutes by default. Without them RabbitMQ closes the channel,
//     and on 3.x and 4.0 to 4.2 the messages come back out of order.
//   - Compaction (roll.go): queues with few long and many short delays, whose stretches would use up the 2,047 channels of a connection.
//   - Consumers that are put back (cancelled_consumers.go): clusters of 3.x whose nodes die.
//   - Consumers that are left behind (looks.left): clusters whose nodes die. Without it the keeper takes its own dead consumers for an application's
//     and stands aside, up to minutes.
//   - A second look, and glimpses (looks.suspected): brokers without the event exchange, where a consumer that comes for a moment is
//     seen by chance, and one's own that is just being opened or closed could be taken for another.
//   - Two more tries (givenBack.retry): machines whose clocks run at different speeds.
//
// # Parts
//
// core decides and does nothing itself: inputs with an instant go in, commands come out. Its parts have their own state: line has the
// messages held and the consumer that takes more, stays the consumers that were cancelled and are back, givenBack the messages on their way
// out or back, ages what is known about the age of new messages, rolls when stretches are given back and taken again, aside how long
// others are left alone.
// session carries the commands out with amqp091-go: on one connection, which other keepers may share, with one goroutine that owns the core, and one for
// each answer that is waited for (command.go, channel.go). Each held message costs 68 bytes here. Leases and shadows for several Curfews
// are in package lease.
//
// # Left to others
//
// Connecting and failing over, reading the facts, seeing consumers by events, and what to do with the reports.
package keeper
