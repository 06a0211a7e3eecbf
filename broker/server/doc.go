// Package server speaks AMQP 0-9-1 and 1.0 with clients: listeners, connections, channels. It turns
// methods into calls on package broker, and the broker's answers into frames.
//
// # One connection
//
//	socket ─► reader: frames parsed in place ─► channel: method or content
//	              │ end of what one read brought             │ publishes, acks gathered
//	              └─────────────── flush ◄───────────────────┘
//	                                 ▼ one lock per queue and batch
//	                               broker ─► Consumer.Pull ─► outbox ─► writer ─► socket
//
// Only the reader goroutine touches the state of a connection and its channels. What
// deliveries share with it (tags, unacked, credit) is guarded by a lock of the channel's
// deliveries. Publishes and settlements are gathered until the end of a read, or until
// another method needs to see their effect. Deliveries, confirms and replies are gathered in
// the outbox; its writer swaps the buffer out and sends it in one write. The reader runs for
// as long as the connection exists. The writer runs only while there is something to send:
// starting it costs no more than waking it.
//
// # Parts
//
// A connection and its channels decide which part a frame is for. The parts know neither.
//
//	handshakes            which connections may be in their handshake     admission.go
//	authenticator         who the client is                               sasl.go
//	assembly              a publish, put together from its frames          assembly.go
//	confirms              publisher confirms of a channel                  confirms.go
//	internal/manage       methods, and requests of AMQP 1.0, that declare, bind, purge and delete
//	internal/deliveries   consumers of a channel, prefetch, unacked messages, settlements; frames that wait for the socket,
//	                      the writer, heartbeats; the memory that the client makes the broker hold; pooled buffers
//
// In this package are the types that a connection (connection.go) consists of besides:
// handshake (until it is open), readDeadline (how others wake the reader), channelTable, flow.
// A channel (channel.go) executes methods in publish.go, consume.go, reply.go and
// transaction.go.
//
// # AMQP 1.0
//
// The first octets decide. A client of 1.0 has the same connection, reader, outbox, budget and login
// (client10.go), and a session of its is a channel (session10.go): its deliveries, prefetch, which is
// the credit of a link, publishes and alarms are those of 0-9-1. Messages are converted where they
// come in and go out (internal/convert). A session holds at most one message that is larger than
// the client's window.
//
// A link to or from a node is a conversation of requests and answers: RabbitMQ's /management (node10.go). If Options.ServiceBus
// lets clients of Azure Service Bus in, links mean entities, $cbs checks tokens, and each entity has a $management
// (servicebus.go, servicebus_node.go, internal/manage; package servicebus has what is on the wire).
//
// # States
//
//	(TLS) ─► await start-ok ─► await tune-ok ─► await open ─► running ─► closing ─► ended
//
// A channel is in one of three modes: plain, publisher confirms (confirm.select), or
// transactional (tx.select). In a transaction, publishes are in the store but in no queue
// until the commit, and settlements wait in the channel's deliveries (transaction).
//
// A request from outside (to close the connection, or to check for deliveries that were not
// acknowledged in time) sets the connection's read deadline to the past. The reader wakes
// and carries out the request, so the state has one owner.
//
// # Bounds
//
//   - Before login: frames of 8 KiB, tables of depth 4, ten seconds for the first octets and TLS,
//     ten for the login, and ten more until the virtual host is open. When there are too many
//     connections in their handshake, the oldest one of the address that has the most is closed
//     (admission).
//   - An oversized frame is refused before it is buffered. Bodies take memory as they
//     arrive. Unfinished publishes, transactions, channels, consumers and unsent frames are
//     charged to a memory budget that all clients share (deliveries.Memory, broker/memory). When the
//     budget is used up, the largest connection of the user who holds the most is closed
//     with 506. In any case one connection may hold no more than 64 MiB and one message.
//   - Of a consumer's arguments, up to 1 KiB is kept for display.
//   - A full outbox (512 KiB; 64 KiB while the budget is used up) stops deliveries to the
//     connection: its consumers wait, and the writer wakes them. At 4 MiB the connection is
//     no longer read. A client that reads nothing for 30 s is disconnected.
//   - A connection whose publishes run ahead of the consumers is not read for a while, and one
//     whose publishes are costly waits for its turn (flow.go). While a resource alarm is on, a
//     connection that publishes is not read at all (blocked.go); if its client is gone, it is
//     closed (peer.go).
//   - What one read publishes is flushed in parts if it goes to very many queues (flushEntries).
//   - An open transaction holds at most 65,536 publishes and 256 MiB. A publish beyond that
//     is answered with 406.
//   - Direct replies are lost when 16 MiB wait in the outbox: nobody waits for them.
//   - A delivery that is not acknowledged in time closes its channel (ack_timeout.go).
//   - Buffers come from pools and go back as soon as their content is parsed or sent: an
//     idle connection keeps 512 octets.
//
// # Errors
//
// An *amqp.Exception is answered on the level that its code determines, with RabbitMQ's
// text. Any other error is a fault of the broker: it is logged, and the connection is
// closed with 541. A panic ends only its own connection.
//
// # Metrics and listings
//
// List and Totals serve management. A channel counts deliveries under their lock, and
// publishes in numbers of its reader that are added up once a batch. channelTable has a leaf
// lock: it lets other goroutines see the list of channels.
//
// # Left to others
//
// What the methods mean, and who may log in and do what (broker), bytes (broker/amqp),
// durability (broker/store), certificates (whoever listens).
package server
