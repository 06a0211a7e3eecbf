// Package delay delivers the messages of one queue of RabbitMQ when each is due, whatever their order.
//
// Messages wait in a queue that only Curfew consumes. A Keeper holds them unacknowledged. When one is due, the Keeper discards it
// (AMQP 1.0's modified with undeliverable-here for a quorum queue of RabbitMQ 4, since before 4.3 basic.nack would mark it as redelivered and count
// it; basic.nack without requeue for any other), and RabbitMQ itself dead-letters it to where it belongs, with reason rejected and with the queue's own
// dead-letter strategy. Nothing is published for that, and bodies are hashed and dropped.
//
//	publisher ──► foo (headers) ──x-delay, x-cancel──► foo.delay ──► Keeper: holds until due, then discards
//	                 │ everything else                     │ dead-letter-exchange
//	                 └──alternate-exchange──► foo.now ◄────┘
//	                                             └──► consumers
//
// The binding between foo and foo.delay has void arguments, which match any value. JSON cannot express them, so no definitions file and no
// management API can make or keep it: the Keeper does, at each start and each minute (binding.go).
//
// # Put aside
//
// A quorum queue of RabbitMQ 4.3 can do the waiting: with AMQP 1.0, a message settled as modified with x-opt-delivery-time is delivered
// again then. So what is due later than HeldFor from now is put aside until that long before it is due, and held only for the rest. A stamp,
// an annotation, says when it is due, so RabbitMQ's log remembers that and nothing else has to. What is due later than stampFrom and sooner
// than HeldFor is stamped too, and comes back at once. What has come back is held, however early RabbitMQ's clock has it come. So is what RabbitMQ would
// expire before it is due: that would deliver it as soon as it is back.
//
//	published ──► due soon ────────────────────────────► held ──► discarded
//	         └──► stamped, aside until due - HeldFor ──┘
//
// Nobody can touch what is aside. The core knows what it has put there since it was made; while it has not seen RabbitMQ have nothing aside,
// there may be more. A command to cancel such a message stays unacknowledged, as a tombstone, until it is back. A tombstone that Curfew
// publishes itself, for an operator or a replacement, is only in memory until RabbitMQ has confirmed it; until then it is published again on
// each new connection, and nobody is told that the message is cancelled or replaced. So there may be two, and one may be read when its message has long gone: it says when the command was given, the stamp says
// when a message was first put aside, and what was put aside later is let through. Two Curfews' clocks have to agree about which was first. If AMQP
// 1.0 cannot be had, everything is held.
//
// # When a message is due
//
// By the first of these that it has:
//
//	stamp          of this wait: a message that has come out of the queue more often since has an old one
//	x-delay-until  header: Unix ms
//	x-delay        header: ms after it was published; an integer, a float, or digits. There is no upper limit but a hundred years
//	expiration     the property, or the queue's message-ttl
//
// A message with none of them, with a delay of 0 or less, or with nonsense is due at once. So is one that has just come out of another delay
// queue (x-death): it has waited there.
//
// Absolute times are those of the wall clock, also in stamps and in Redis. When somebody sets it, what waits for such a time waits for the new one; any
// other wait stays as long as it was.
//
// A message that has just been published was published when it came. One that comes again is known by its fingerprint: its due time is in memory
// or, after another Curfew has taken over, in Redis. The fingerprint is the same over AMQP 0-9-1 and 1.0. Equal messages share one. Those that
// are still there are the latest of them, since they are discarded in order; so whatever comes again first gets the latest due time that is known. A
// message of which nothing is remembered is as old as its header timestamp_in_ms or its timestamp says; without them its delay begins again, and it
// counts as of unknown age.
//
// # Commands
//
// A command is a message in the same queue, behind what it is about, so RabbitMQ has checked the sender's right to publish there.
//
//	x-cancel: ID                        the waiting message with that message-id is acknowledged, and never delivered
//	x-delay: MS, x-replace: ID          this message takes its place; with x-replace-only: true it is dropped if there is none to replace
//	x-delay: MS, x-reschedule: ID       the waiting message is due that long from now, unless it is aside; the command itself is not delivered
//
// The answer goes to reply-to, with the correlation-id and one of the words of Outcome. Options.Cancel says who may. Each message has one winner: it
// is settled once, by the one goroutine that writes, and the answer says by whom. A command that comes before its message waits for it for a moment;
// after a start, nothing is settled until all that was in the queue has been read. RabbitMQ may
// not have noticed yet that a killed Curfew is gone: for ten seconds a command waits until nothing has come for two. When the
// connection is lost, an acknowledgement may be lost with it: a message that was cancelled and comes again is acknowledged again.
//
// # Retries
//
// With Options.Retry the queue has what workers have rejected (retries.go). x-death says in which queue, and how often; Retry says how long it waits
// then, or that it is parked. On RabbitMQ 4 the Keeper consumes over AMQP 1.0 and discards with the outcome modified, whose annotation x-curfew-to is
// the queue that the headers exchange behind finds; each target is bound there before the first message that needs it. When a message was
// rejected is in its x-opt-deaths, so that nothing has to be remembered. If AMQP 1.0 cannot be had, what is due is given back, and published to that
// headers exchange when it comes again; x-curfew-times keeps its count then. On RabbitMQ 3 there is a queue that waits for each work queue: what is discarded goes
// back, and what is parked is published, confirmed and then acknowledged. Its x-death has the time of the first rejection only.
//
// # Guarantees
//
//   - Nothing is delivered early: not by the Keeper, whatever is lost. RabbitMQ itself discards a message with an expiration of its own at
//     that time while nobody holds it.
//   - A rejected message is in its work queue or in its parking queue in the end, once; a Keeper that is killed or loses its connection while it publishes
//     may do so twice. It publishes over a connection of its own, so that no alarm of RabbitMQ keeps it from settling.
//   - The Keeper never has the only copy of a message. If it ends, RabbitMQ has them all again.
//   - Once: a message is settled once. What RabbitMQ's at-least-once dead-lettering doubles when a leader dies, it doubles.
//
// # Consumers
//
// RabbitMQ scans all that a channel holds at each nack. So several channels compete, each with up to perChannel messages; when they are nearly full,
// one more is opened. Before RabbitMQ's consumer_timeout a channel is closed, and its messages go to the others. From 4.3 on the consumers of quorum
// queues have a timeout of a year instead.
//
// # Parts
//
// core decides and does nothing itself; aside.go has its part for what is put aside. session is one connection, with another one for AMQP 1.0: a goroutine
// for each channel or link hands deliveries to the core, and one writes what it decides.
package delay
