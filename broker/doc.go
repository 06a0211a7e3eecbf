// Package broker is an AMQP 0-9-1 broker without sockets: virtual hosts,
// exchanges and bindings, queues with their consumers, dead-lettering, and the
// API by which a monitor learns of deadlines and has them kept. It can be
// embedded as it is; broker/server puts it on the wire.
//
// # One message
//
//	Publisher.Add ─► route ─► store.Put ─► batch per queue
//	Publisher.Flush ─► the queue at work (internal/delivery), under its lock:
//	                     core.Publish ─► dispatch to consumers ─► effects ─► feed, store
//	                   after unlock: Transition.Done takes a first turn of the dead letters
//
// A message that expires is noticed lazily, when a delivery, a get or a requeue
// meets it, or eagerly, when Expire names it. Either way the pure core (package
// broker/queue) decides, under the queue's lock, and decides once: a message
// leaves for one reason.
//
// A transaction is a publisher that is not flushed before the commit: what it added is in
// the store, and in no queue yet (broker/server). Its publishes and settlements are
// journaled as one record (Publisher.Transact).
//
// # Dead letters
//
// What leaves for a reason that dead-letters is put in its queue's line under the queue's
// lock (internal/delivery), and moved on by turns without it (internal/forward), so that no two queue locks
// are ever held. Its source keeps its reference to the store until it is in its new
// queues; both are journaled as one record, so that in a crash it is still in its
// source or already in all its targets.
//
// A publish, an acknowledgement and a get take the first turn of what they cause
// themselves; the rest is the forwarder's. Expire and the timers never move a letter, so deadlines do not wait
// for those of others.
//
// Where the dead-letter exchange is missing or routes nowhere a dead letter is parked in
// UndeliverableQueue (RabbitMQ loses it); a cycle without a rejection is cut as
// RabbitMQ cuts it. What has died 16 times without a rejection, or would become more than
// 4,096 copies, is parked, too: with a rejection between, a consumer has decided.
//
// With x-dead-letter-strategy at-least-once what a target does not take is retained by
// its source and tried again (delivery.Retained). Publisher.Move takes a message from anywhere in its queue
// to others in the same way, as one record.
//
// # Moves
//
// Publisher.Move takes a ready message from anywhere in its queue to where another
// publish would go: it is held as if by a consumer while its successor enters the
// targets, then settled, both in one record. Replays of dead letters are made of it
// (broker/deadletters).
//
// # Delayed messages
//
// A publish with x-delay or x-scheduled-enqueue-time is checked as any other and
// then waits in its virtual host's schedule (internal/delayed). When it is due
// it is routed as if published then, also with the monitor off; leaving and entering
// are one record, and its time to live counts from there. One that no queue is bound for then
// is parked like a dead letter. A schedule is built as a queue is: the store, recovery and the turns are
// those that messages and dead letters have anyway.
//
// Its exchange is the one that has the name when it is due, maybe made again by
// others: AMQP knows exchanges by name. The publisher was asked for the right to write to
// that name when it published, whoever makes it again needs configure on it, and whoever
// has messages from it read: a delay gives nobody access that they would not have without it.
// So an internal exchange takes none. A topic permission was asked for if it was a
// topic exchange when the message was published.
//
// Until it is due it counts as use of the queues it would go to now, and of the exchanges on
// its way, for x-auto-delete-on-idle (idle.go, internal/topology).
//
// # Direct replies
//
// A publish to a name that OpenReply made up goes to the channel that waits for it, is
// stored nowhere and lost if nobody waits.
//
// # What expired
//
// A publisher that gives the header x-expiry-receipt true, and reply-to, is told when the
// message expires, with or without a dead-letter exchange: by a message that is a part of
// the expiry's record (internal/forward). Every message that expires is told once on one stream
// (Deadlines.Expiries), when it is where it goes, by whoever moved it.
//
// # Consumers
//
// The consumers of a queue are served in order: the highest priority first, in turns within one,
// and with x-single-active-consumer one of them alone. A delivery of a queue with
// x-lock-duration lapses (internal/delivery), unless whoever holds it renews its lock: by a publish to
// LockQueue, which is not a queue (lock_requests.go). With x-delivery-deadline a delivery says
// until when it is good, and names its lock. What is due for a queue though nobody asks (a lock, a
// retry, x-expires, x-auto-delete-on-idle) is in one heap with one timer (internal/delivery).
//
// # Flow
//
// A publisher at full speed keeps the processor from the consumers of its queue. The
// queue then says so in the transition, and the publisher, if it can (Rights.Pace), waits before it
// goes on: after its messages have entered, so nothing is held up but what it has not said
// yet. Dead letters, delayed messages and firing never wait.
//
// # Users
//
// A connection logs in (Authenticate, Identify), opens a Session in a virtual host, and
// asks its Rights for each thing it does; they remember what was granted until users or
// permissions change. Package broker/access has the rules. The methods of Rights are
// those of VHost with the permissions before them; VHost's own ask nobody, for programs
// the broker is embedded in.
//
// # Policies
//
// A queue's effective settings are its arguments combined with the policies of its virtual host
// (package broker/policy): one value, swapped under the queue's lock when a policy
// changes and read with Queue.Set. Limits act at once; stamped deadlines stay,
// unless SetPolicyRetroactively is asked for. A dead letter keeps the settings
// under which it left. The queue beside one for its dead letters (topology/subqueue.go) is made when a
// policy first asks for it, once that is in force. Patterns are matched with no lock held, in a budget of steps
// (policy.Budget): a change on a copy of the policies and names, a declare on a copy of
// the policies; under VHost.mu what came meanwhile is looked at, so that the result is
// as if one had come before the other. What does not fit into the budget is refused; a
// policy that was saved and does not fit stays, and is not in force.
//
// # Definitions
//
// Users, virtual hosts, policies and what is durable of exchanges, queues and bindings
// are kept in the store, each under a key of its own: a change costs the same however many
// there are. What is not saved is not there: a durable queue or exchange is among the
// others, and a policy, a user or a permission in force, once its definition is on disk,
// so no message can enter a queue that a crash would take away. Others who would change
// the same meanwhile wait (claims of topology.VHost, Broker.admin), and during an import those who
// would make anything (Change). A binding holds at once and goes again if it cannot be
// saved. What is deleted is gone at once, and if that cannot be saved, the store tries
// again.
//
// A queue's definition goes together with a note of its incarnation, which stays until
// the journal says that its messages have gone. So a start drops the messages of a deleted
// queue, and those of one whose definition is missing come back in a queue named by
// RecoveredPrefix.
//
// # Locks
//
// In this order, and never two of a kind:
//
//	Broker.admin ─► a virtual host's importing ─► governing ─► mu (topology) ─► a queue's (delivery) ─► a channel's ─► an outbox's, the feed's, the store's
//
// The first three are held while the disk is waited for, and an import holds importing
// of several virtual hosts, in the order of their names. The others are leaves, below a virtual host's mu and above
// the store's: that of accounts, and below it the tables of virtual hosts, delayed messages and queues by incarnation
// (topology.Registry); those of timers, idlers, forwarder, shrinker, saver, sessions, replies, login guesses, pauses
// of publishers, global parameters and the resource alarm. Under a queue's lock there is only
// memory: the core, hand-over to outboxes, the feed and the store's buffers. A function
// that is called with a lock held ends in Locked.
//
// # Time
//
// Instants are Unix µs; times to live, and what users give and read, ms.
// Deadlines are stamped with the present instant rounded up and judged against it
// rounded down, by a Clock that does not follow steps of the wall clock and, with a data
// directory, goes on over restarts (internal/clock). Late is possible, early is not.
// Reschedule gives a queued message another deadline, and that is journaled.
//
// So after a run with a wrong wall clock the two differ (ClockOffset). Inside, in the
// journal, in the schedule and in every deadline.Ref, instants are of the broker's clock.
// What a client or a person gives or reads is of the wall clock: headers, receipts, the
// time in x-death, audit and traces (Expiry.Wall), the HTTP API, the dashboard, metrics.
// It is converted where it comes in or goes out, by what the wall clock says at that
// moment: an instant that is given is now + (given - wall clock's now) (Instant), and one
// that is shown the reverse (UnixMillis). A delayed message's x-expires-at is converted
// when it is enqueued.
//
// # Counting and looking
//
// A queue counts under its lock, plain numbers; publishers add what concerns
// exchanges and the whole broker once a batch (counts.go). What a deleted queue has
// counted is kept, so that totals never fall. Browse and Info look without touching;
// Survey samples the queues, for a forecast.
//
// # Rooms inside
//
// What needs nothing of the broker is in packages below internal: the clock of deadlines
// (clock), arguments and settings (queueargs), properties and headers (message), the
// alarm of memory and disk (resources), definitions as they are saved (catalog), users and
// their rights (accounts), one queue at work (delivery), messages that wait until they are due (delayed), what
// is declared, its policies and routing (topology), and the turns of dead letters (forward). Here are
// publishers, sessions, imports and recovery, and what joins these. Public
// names of those packages stay available here (names.go).
//
// # Left to others
//
// Waking up at deadlines (monitor, scheduler), bytes (broker/amqp), matching
// (broker/exchange), the state of one queue (broker/queue), durability
// (broker/store), who may do what (broker/access), what a policy says (broker/policy),
// clients (broker/server), tools (broker/management, broker/definitions).
package broker
