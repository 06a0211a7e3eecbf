// Package server speaks AMQP 0-9-1 with clients: listeners, connections,
// channels. It turns methods into calls on package broker and its answers into
// frames.
//
// # One connection
//
//	socket ─► reader: frames parsed in place ─► channel: method or content
//	              │ end of what one read brought             │ publishes, acks gathered
//	              └─────────────── flush ◄───────────────────┘
//	                                 ▼ one lock per queue and batch
//	                               broker ─► consumer.Pull ─► outbox ─► writer ─► socket
//
// The reader is the only one to touch a connection's and a channel's state; what
// deliveries share with it (tags, unacked, credit) has the channel's lock.
// Publishes and settlements gather until the read's end, or until another method
// needs to see their effect. Deliveries, confirms and replies gather in the
// outbox, which its writer swaps out and sends in one write. The reader is there for as
// long as the connection is, the writer while there is something to send: starting it
// costs no more than waking it.
//
// # States
//
//	(TLS) ─► await start-ok ─► await tune-ok ─► await open ─► running ─► closing ─► ended
//
// A channel is plain, or confirms publishes (confirm.select), or is in a transaction
// (tx.select): then publishes stand in the store and in no queue, and settlements wait
// here, until the commit (transaction).
//
// Whoever wants something of a connection from outside (it is forced to close, a delivery
// was not acknowledged in time) sets its read deadline to the past: the reader wakes and
// does it, so its state has one owner.
//
// # Bounds
//
//   - Before a login: frames of 8 KiB, tables of depth 4, ten seconds, five of them for
//     TLS. Of connections in their handshake the oldest of the address that has most
//     gives way when there are too many (admission).
//   - A frame's size is refused before it is buffered; bodies take memory as they
//     arrive. Unfinished publishes, transactions, channels and consumers are counted and
//     drawn from the budget of all clients, as is what waits to be sent (held.go,
//     broker/memory): the connection that holds most is closed with 506 when that is used
//     up. Beside that one connection holds 64 MiB and one message at most.
//   - Of a consumer's arguments 1 KiB is kept for others to see.
//   - A full outbox (512 KiB; 64 KiB while the budget is used up) stops deliveries to the connection, its consumers
//     wait and are woken by the writer; at 4 MiB nothing more is read from it; a
//     client that takes nothing for 30 s is cut off.
//   - A connection that publishes more than the consumers of its queues get processor time
//     for is not read for a while (flow.go); one that publishes while memory or disk are low is
//     not read until they are not (blocked.go).
//   - An open transaction holds 65,536 publishes and 256 MiB at most; a publish above
//     is answered with 406.
//   - Direct replies are lost beyond 16 MiB in the outbox: nobody waits for them.
//   - A delivery that is not acknowledged in time closes its channel (ack_timeout.go).
//   - Buffers come from pools and go back when what is in them is parsed or sent: an
//     idle connection keeps 512 octets.
//
// # Errors
//
// An *amqp.Exception is answered on the level its code says, with RabbitMQ's text.
// Anything else is a fault of the broker: logged, and 541 on the connection. A
// panic ends its connection alone.
//
// # What it shows
//
// List and Totals, for management: a channel counts under its own lock or, where
// its reader has none, in numbers of its own that are handed over once a batch.
// connection.listing is a leaf that lets others see which channels there are.
//
// # Left to others
//
// What the methods mean, who may log in and do what (broker), bytes (broker/amqp),
// durability (broker/store), certificates (broker/certs).
package server
