// Package delivery is one queue at work: the pure state machine (broker/queue) behind a lock, its
// consumers and timers, and the line of messages that have left it and are on their way elsewhere.
//
//	Batch ─► Queue ─┬─► core ─► consumers (Sink.Pull calls Source.Next)
//	                ├─► letters in line ─► forwarding (Lines.First, Lines.Later)
//	                └─► journal, feed, records of expiries
//
// A Transition is one call that works on queues. It takes a queue's lock and reads the clock.
// The core decides, and ready messages are offered to consumers. Before the lock is released,
// events go to the feed and records to the journal, in order. Done does the rest with no lock
// held. Transitions are pooled; none outlives its call.
//
// # Parts of a queue
//
//	Identity    what it is known by, and its settings            identity.go
//	messages    what is in the queue, and how to read it         messages.go, browse.go, deadlines.go
//	consumers   the order in which they are served               consumers.go
//	Locks       deliveries with x-lock-duration                  locks.go
//	flow        when publishers have to wait for consumers       flow.go
//	Idle        x-expires and x-auto-delete-on-idle              idle.go
//	Letters     messages that have left and go elsewhere         letters.go
//	Retained    letters that not all targets accepted            retained.go
//
// # What it guarantees
//
// A message leaves for one reason, and once. The journal has the events of one queue in the
// order in which they happened. Compaction finds a letter in line until it has arrived. Letters
// move on in the order in which they left their queue, except those that wait for a target
// (x-dead-letter-strategy at-least-once): a timer retries them. The clock as read under the
// lock decides whether a deadline has come: late is possible, early is not.
//
// Everything has a bound: the feed (clients that publish wait before it is full; if it is, its reader takes a snapshot), the letters
// in line (when there are too many, a caller that causes more helps to move them), and the
// scratch memory that is kept for the next call.
//
// # Locks
//
// A queue has one lock, messages.mu. It guards all parts of the queue and the fields of its
// consumers. No two queues are ever locked at once. Functions whose names end in Locked are
// called with the lock held, and so are the methods of the plain collections in a part, which
// know no lock (priorityLevel, lockTable, letterLine, enqueueTimes, counters). All others take
// it themselves.
//
// No operation holds it for long, whatever is in the queue: at most queue.AtOnce messages are worked on
// under one lock, and whoever has more to do takes it again (Publish, SettleWith, serve, Trim). A
// purge or a deletion takes the contents out at once, and settles them in such steps. Expire does not
// wait for the lock if it is asked not to. How long the lock was held is measured (Holds).
//
// What is taken under it are a channel's lock (Sink, LockHolder) and leaf locks: those of the
// feed, the timers, the shrinker, and the store. Nothing that runs
// under it waits for a disk or a network.
//
// # Calls upwards
//
// With no lock held: Queue.Registered, the declared queue, when a timer fires or an auto-delete
// queue has lost its last consumer; and Lines.First and Lines.Later, when a transition has put
// letters in line. Under the lock: only Sink and LockHolder, which must not block.
//
// Left to others: which queues are declared, who owns them and how messages are routed
// (topology), where letters go (forward), what a policy means (policy), messages that are
// not due yet (forward).
package delivery
