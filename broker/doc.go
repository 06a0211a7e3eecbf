// Package broker is an AMQP 0-9-1 broker without sockets: virtual hosts,
// exchanges and bindings, queues with their consumers, dead-lettering, and the
// API by which a monitor learns of deadlines and makes messages expire on time. It can be
// embedded as it is; broker/server puts it on the wire.
//
// # One message
//
//	Publisher.Add ─► route ─► store.Put ─► batch per queue
//	Publisher.Flush ─► the queue at work (internal/delivery), under its lock:
//	                     core.Publish ─► dispatch to consumers ─► effects ─► feed, store
//	                   after unlock: Transition.Done takes a first turn of the dead letters
//
// An expiry is noticed lazily, when a delivery, a get or a requeue meets the message, or
// eagerly, when Expire names it. Either way the pure core (package broker/queue) decides,
// under the queue's lock, and decides once: a message leaves for one reason.
//
// A transaction is a publisher that is not flushed before the commit: what it added is in
// the store, and in no queue yet (broker/server). Its publishes and settlements are
// journaled as one record (Publisher.Transact).
//
// # Dead letters
//
// A dead letter is put in its queue's line under the queue's lock (internal/delivery), and
// is moved on in turns without that lock (internal/forward), so that no two queue locks are
// ever held at once. It keeps its place in the store until it is in its new queues. Both
// are journaled as one record, so after a crash it is either still in its source or already
// in all its targets.
//
// A publish, an acknowledgement and a get take the first turn of what they cause
// themselves; the forwarder does the rest. Expire and the timers never move a letter, so
// deadlines do not wait for other messages' letters.
//
// If the dead-letter exchange is missing or routes nowhere, the dead letter is parked in
// UndeliverableQueue (RabbitMQ loses it). A cycle without a rejection is cut, as RabbitMQ
// does. A message that has died 16 times since a consumer last rejected it, or that would
// become more than 4,096 copies, is parked, too.
//
// With x-dead-letter-strategy at-least-once, what a target does not take is retained by its
// source and tried again (delivery.Retained).
//
// # Moves
//
// Publisher.Move takes a ready message from anywhere in its queue to where another publish
// would go. The message is held as if by a consumer while its successor enters the targets,
// and is then settled, both in one record. Replays of dead letters are made of moves
// (broker/deadletters).
//
// # Delayed messages
//
// A publish with x-delay or x-scheduled-enqueue-time is checked like any other and then
// waits in its virtual host's schedule (internal/forward). When it is due, it is routed as
// if it had been published then, with or without a monitor. Its leaving and entering are one
// record, and its time to live begins there. If no queue is bound for it then, it is parked
// like a dead letter. A schedule is built like a queue, with the same store, recovery and
// turns.
//
// It goes to the exchange that has the name when it is due, which others may have deleted
// and declared again: AMQP knows exchanges by name. A delay gives nobody access that they
// would not have without it: the publisher needed the right to write to that name at the
// publish, whoever declares the exchange again needs configure on it, and whoever gets
// messages from it needs read. So an internal exchange takes no delayed messages. A topic
// permission was asked for if it was a topic exchange at the publish.
//
// Until it is due, it counts as use of the queues that it would go to now, and of the
// exchanges on its way, for x-auto-delete-on-idle (idle_expiry.go, internal/topology).
//
// # Direct replies
//
// A publish to a name that OpenReply made up goes to the channel that waits for it. It is
// stored nowhere, and lost if nobody waits.
//
// # What expired
//
// A publisher that sets the headers x-expiry-receipt (true) and reply-to is notified when
// the message expires, with or without a dead-letter exchange, by a message that is part of
// the expiry's record (internal/forward). Every expiry is reported once, on one stream
// (Deadlines.Expiries), when the message has arrived where it goes, by whoever moved it.
//
// # Consumers
//
// The consumers of a queue are served by priority, the highest first, and in turns within
// one priority; with x-single-active-consumer, one of them is served alone. A delivery from
// a queue with x-lock-duration lapses (internal/delivery) unless its consumer renews the
// lock, by a publish to LockQueue, which is not a queue (lock_requests.go). With
// x-delivery-deadline, a delivery says until when it is good, and names its lock. Whatever
// becomes due for a queue (a lock, a retry, x-expires, x-auto-delete-on-idle) is in
// one heap with one timer (internal/delivery).
//
// # Flow
//
// A publisher at full speed keeps the processor from the consumers of its queue. So it has
// credit, which consumers give back by taking messages (internal/delivery, flow). Without
// credit, a publisher that can wait (Rights.Pace) does so before it goes on. By then its messages
// have entered, so only what it has not sent yet is held up. Dead letters, delayed messages and
// firing never wait. A publisher of deadlines also waits, a little at a time, while the monitor is behind
// (delivery, Transition.awaitFeed), and one that can wait while the forwarder is (Pacing.AwaitLetters).
//
// What keeps a processor busy for long is done in turns (turns.go): messages that are costly to
// route, and publishes while consumers fall behind. One processor is left for everything else.
//
// # Users
//
// A connection logs in (Authenticate, Identify), opens a Session in a virtual host, and asks
// its Rights before each thing it does; they remember what was granted until users or
// permissions change. Package broker/access has the rules. The methods of Rights are those
// of VHost, with a check of permissions first. VHost's own methods check nothing: they are for
// programs that embed the broker.
//
// # Policies
//
// A queue's effective settings are its arguments combined with the policies of its virtual
// host (package broker/policy): one value, which is swapped under the queue's lock when a
// policy changes, and read with Queue.Settings. Limits act at once; deadlines that are stamped
// already stay, unless the policy is set by Policies.SetForBacklog. A dead letter keeps the settings
// under which it left. A queue's dead-letter sub-queue (topology/subqueue.go) is
// declared when a policy that asks for it first comes into force.
//
// Patterns are matched with no lock held. A change of policies works through all names in
// portions. What is declared in the meantime has the new policies from the start. A saved policy
// that this version refuses is kept, but is not in force.
//
// # Definitions
//
// Users, virtual hosts, policies and durable exchanges, queues and bindings are kept in the
// store, each under a key of its own, so a change costs the same however many there are.
// Nothing takes effect before it is saved: a durable queue or exchange becomes visible, and a
// policy, a user or a permission comes into force, once its definition is on disk. So no
// message can enter a queue that a crash would take away. Until then, whoever wants to change
// the same thing waits (claims of topology.VHost, Broker.admin); during an import, whoever
// wants to declare anything does (Change). Bindings are the exception: a binding takes effect at once,
// and is removed again if it cannot be saved. What is deleted is gone at once; if that cannot be
// saved, the store tries again.
//
// When a queue's definition is deleted, a note of its incarnation takes its place, until the
// journal says that its messages have gone. So a start drops the messages of a deleted
// queue, while those of a queue whose definition is missing come back in a queue named by
// RecoveredPrefix.
//
// # Locks
//
// In this order, and never two of a kind:
//
//	Broker.admin ─► a virtual host's importing ─► governing ─► mu (topology) ─► a queue's (delivery) ─► a channel's ─► an outbox's, the feed's, the store's
//
// The first three are held during waits for the disk. An import holds importing of
// several virtual hosts, in the order of their names. All others are leaves, below a virtual
// host's mu and above the store's: the one of accounts, and below it those of the tables
// of virtual hosts, delayed messages and queues by incarnation (topology.Registry); those of timers,
// idlers, forwarder, shrinker, saver, sessions, replies, login guesses, turns,
// global parameters and the resource alarm. Nothing under a queue's lock leaves memory: the
// core, the hand-over to outboxes, the feed and the store's buffers. The name of a function
// that is called with a lock held ends in Locked.
//
// What takes a step for each of many is divided, so that a lock that others need is held for about a millisecond at most, and a goroutine
// that works for many is not kept for longer:
//
//	messages      queue.AtOnce under one lock; a purged or deleted queue hands them over and they are settled without it (delivery.Contents)
//	bindings      exchange.Pace pauses searches, lists and exports; sweepStep removes those of what was deleted (topology/sweep.go)
//	queues        Pace for lists and exports; portion, for policies; undefineStep, for a deleted virtual host (topology.Ended)
//	exchanges     Pace; each is passed once by a message (topology/route.go)
//	policies      matched with no lock held (topology.Policies)
//	dead letters  turns by time, of one virtual host after the other (forward.go)
//	connections   a copy of the list is made under its lock, and worked through without it (server.open, sessions)
//
// Copied in one step, by pointer, some 20 ns each: the queues of all virtual hosts (Registry.Queues) and, once, of one that is deleted. Not
// divided: permissions, which only administrators grant, and the definitions that an import saves at once.
//
// # Time
//
// Instants are in Unix µs. Times to live, and instants that users give and read, are in ms.
// Deadlines are stamped with the present instant rounded up and judged against it
// rounded down, by a Clock that does not follow steps of the wall clock and, with a data
// directory, continues across restarts (package deadline). A deadline may be late, never early.
// Reschedule gives a queued message another deadline, and that is journaled.
//
// So after a run with a wrong wall clock the two clocks differ (ClockOffset). Inside, in the
// journal, in the schedule and in every deadline.Ref, instants are on the broker's clock.
// What a client or a person gives or reads is on the wall clock: headers, receipts, the
// time in x-death, audit and traces (Expiry.Wall), the HTTP API, the dashboard, metrics.
// It is converted where it comes in or goes out, by what the wall clock shows at that
// moment: a given instant becomes now + (given - wall clock's now) (Instant), and a shown one
// the reverse (UnixMillis). A delayed message's x-expires-at is converted
// when it is enqueued.
//
// # Counting and inspecting
//
// A queue counts in plain numbers under its lock. Publishers count for exchanges
// and for the whole broker, once a batch (stats.go). The counts of a deleted queue are kept, so
// totals never fall. Browse and Info change nothing; Survey samples the queues for a
// forecast.
//
// # Packages below internal
//
// Everything that does not need a Broker is in packages of its own: properties and headers (message), the form in which
// definitions are saved, and users and their rights (catalog), one queue at work (delivery), what is declared, with its policies and routing (topology), and what moves dead letters and
// delayed messages in turns (forward). This package has publishers, sessions, imports and recovery, and joins all of these.
// aliases.go has the public names of those packages.
//
// # Left to others
//
// Waking up at deadlines (monitor, scheduler), bytes (broker/amqp), matching
// (broker/exchange), the state of one queue (broker/queue), durability
// (broker/store), who may do what (broker/access), what arguments and policies say
// (broker/policy), when memory and disk are low (broker/memory), clients (broker/server), tools (broker/management, broker/definitions).
package broker
