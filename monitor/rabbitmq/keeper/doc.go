// Package keeper makes the deadlines of one queue of a RabbitMQ exact, without a message ever leaving RabbitMQ.
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
//     killed keeper) RabbitMQ keeps the order within a channel only. A quorum queue may displace a few messages: those that come faster than the
//     next channel opens, if an earlier one has room. A quorum queue with a delivery limit takes back messages that are returned
//     together in any order (seen on 3.10.8).
//   - Other consumers come first. When the keeper sees one, it gives everything back and has no consumer until the other
//     has gone: a low consumer priority alone does not protect a consumer with a small prefetch.
//
// Late messages: a message of unknown age was in the queue before the keeper came, and nobody remembers it. All is given back and taken again in
// even steps of Options.ProbeShare of its TTL, at most every second and for a tenth of the time, and no longer once a message has only one return
// left to spend. What is due while all is given back and taken again is late by the time that takes.
//
// # Stretches
//
// RabbitMQ scans a channel's unacked messages for each nack, so each channel holds Options.PerChannel messages at most. What one channel holds is
// a stretch of the queue. Each has a consumer, and each consumer has a higher priority than the one before it: RabbitMQ gives what is new to
// the last one while that has room, so places that become free in earlier stretches are not filled. The next channel opens when the
// last one is half full, or, while a backlog is taken and earlier ones have no room anyway, when it is full.
//
// No message is held for a cancelled consumer, but for a moment of a release: before 4.3 a quorum queue keeps such messages when the node
// of the connection goes down, until it is up again and the queue has another leader (rabbit_fifo: a lost connection concerns consumers that are
// up). What live consumers held it takes back at once; from 4.3 on, after a minute by default. Package monitor/rabbitmq reports the rest (stranded.go).
//
// A queue goes on counting the consumers of a lost node until the node is back, and a quorum queue those that were ended until it has done what it was
// asked to do. So as many count as the keeper's as have gone, until the list of consumers names an application's (Facts.Others; type looks).
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
//	                                                                        ├──► refused  by a fact, a limit or a missing
//	                                                                        │             permission
//	                                                                        └──► stopped
//
// Each state has a reason. Refused ends by itself when the fact, the number of messages or the permission changes;
// where a delivery limit is nearly spent, or most messages have no TTL, Allow ends it.
//
// # What is refused
//
// Package cluster decides which settings forbid holding messages (Decide), and has the keeper stopped when they change. The keeper itself refuses
// more than Options.MaxMessages or MaxBytes, mostly messages without TTL, more than a quarter of the delivery limit spent
// (RabbitMQ: Quorum Queues, "Poison Message Handling"; 3.x and 4.0 to 4.2 count each return, from 4.3 on a nack does not
// count).
// Two things cannot be seen from here. Applications that poll with basic.get find nothing while messages are held. Only
// RabbitMQ's statistics show them, so package cluster watches these and refuses the queue. And queue.delete with if-empty
// deletes a classic queue whose messages are held: the operator has to know that.
//
// # Special cases, and whom they serve
//
//   - Renewals (renewal.go): all is given back and taken again. For delays of more than half of the consumer_timeout, 15 minutes by default, or RabbitMQ
//     closes the channels; for whoever keeps a queue whose consumers have left a backlog, since nobody knows its age; and for queues with few long
//     and many short delays, which would use up the 2,047 channels of a connection.
//   - Hints (judge): whoever sets a timestamp. A message of unknown age is given back when it should be due.
//   - Consumers that a keeper left behind (looks.left): clusters whose nodes die. Without it the keeper takes its own dead consumers for an
//     application's and stands aside, up to minutes.
//   - A second look (looks.saw): brokers without the event exchange, where one's own consumer that is just being opened or closed could be taken for
//     another, and one that comes for a moment is seen by chance.
//   - Two more tries (remembered.retry): machines whose clocks run at different speeds.
//   - What others consumed meanwhile (givenBack.passed): applications that publish equal messages.
//   - Lateness that is unknown (ages.behind): whoever relies on the lateness that is told.
//
// Dropped since nobody would miss them: windows over queues whose consumers are stuck (lower consumer-timeout); giving back single stretches (three
// kinds of displaced messages, for a second each); consumers without credit in place of cancelled ones; giving up a queue whose messages come back
// after their deadline (each does so four times at most, and is of unknown age then).
//
// # Parts
//
// core decides and does nothing itself: inputs with an instant go in, commands come out. Its parts have their own state: line has the
// messages held and their consumers, givenBack the messages on their way out or back, ages what is known about the age of new messages, looks what the
// queue says about consumers, aside how long others are left alone, release and renewal how all is given back.
// session carries the commands out with amqp091-go: one connection, one goroutine that owns the core, and one for each answer that is
// waited for (event.go, perform_command.go, channel.go). Each held message costs 60 bytes here. Leases and shadows for several Curfews
// are in package lease.
//
// # Left to others
//
// Connecting and failing over, reading the facts, seeing consumers by events, and what to do with the reports.
package keeper
