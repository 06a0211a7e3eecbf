// Package broker is an AMQP 0-9-1 broker without sockets: virtual hosts,
// exchanges and bindings, queues with their consumers, dead-lettering, and the
// API by which a monitor learns of deadlines and has them kept. It can be
// embedded as it is; broker/server puts it on the wire.
//
// # One message
//
//	Publisher.Add ─► route ─► store.Put ─► batch per queue
//	Publisher.Flush ─► Queue.publish, under the queue's lock:
//	                     core.Publish ─► dispatch to consumers ─► effects ─► feed, store
//	                   after unlock: step.bury routes the dead letters
//
// A message that expires is noticed lazily, when a delivery, a get or a requeue
// meets it, or eagerly, when Expire names it. Either way the pure core (package
// broker/queue) decides, under the queue's lock, and decides once: a message
// leaves for one reason.
//
// # Dead letters
//
// What leaves for a reason that dead-letters is collected in the step under way
// and routed after unlock, so that no two queue locks are ever held. Its source
// keeps its reference to the store until it stands in its new queues; both are
// journaled as one record. Where the dead-letter exchange is missing or routes
// nowhere it is parked in UndeliverableQueue (RabbitMQ loses it); a cycle without
// a rejection is cut as RabbitMQ cuts it. There is no ceiling on hops beyond
// that: with a rejection in it, a consumer has decided each round.
//
// # Delayed messages
//
// A publish with x-delay or x-scheduled-enqueue-time is checked as any other and
// then waits in a queue of its virtual host that nobody sees (delays). When it is due
// it is routed as if published then, also with the monitor off; leaving and entering
// are one record, and its time to live counts from there. Why a queue: then the store,
// recovery and the move are those that messages and dead letters have anyway.
//
// # Direct replies
//
// A publish to a name that OpenReply made up goes to the channel that waits for it, is
// stored nowhere and lost if nobody waits.
//
// # Receipts
//
// A publisher that sets the header x-expiry-receipt to true, and reply-to, is told
// when the message expires (receipt), with or without a dead-letter exchange: the
// same worklist makes the receipts, and they are published when it is empty.
//
// # Policies
//
// What holds for a queue is its arguments under the policies of its virtual host
// (package broker/policy): one value, swapped under the queue's lock when a policy
// changes and read with Queue.set. Limits act at once; stamped deadlines stay,
// unless SetPolicyRetroactively is asked for. A dead letter keeps the settings
// under which it left; one that is retained takes those of each try.
//
// # Locks
//
// In this order, and never two of a kind:
//
//	VHost.mu, then Queue.mu, then a channel's, then an outbox's, feed's or the store's
//
// Broker.mu, idleTimer.mu, tidier.mu, and those of accounts and sessions are leaves, save that
// accounts may ask Broker.mu for a virtual host. Under Queue.mu there is only memory: the
// core, hand-over to outboxes, the feed and the store's buffers.
//
// # Time
//
// Deadlines are stamped with the present instant rounded up and judged against
// it rounded down, by a Clock that does not follow steps of the wall clock and, with
// a data directory, goes on over restarts (timeline). Late is possible, early is
// not.
//
// # Counting
//
// A queue counts under its lock, plain numbers; publishers add what concerns
// exchanges and the whole broker once a batch (counts.go). What a deleted queue has
// counted is kept, so that totals never fall. Browse and Info look without touching.
//
// # Left to others
//
// Waking up at deadlines (monitor, scheduler), bytes (broker/amqp), matching
// (broker/exchange), the state of one queue (broker/queue), durability
// (broker/store), clients (broker/server).
package broker
