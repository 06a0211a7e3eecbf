// Package delivery is one queue at work: the pure state machine (broker/queue) behind a lock, its
// consumers and timers, and the line of messages that have left it and are on their way elsewhere.
//
//	Batch ─► Queue ─┬─► core ─► consumers (Sink.Pull, Source.Next back)
//	                ├─► letters in line ─► whoever forwards (the function given to Env.Init)
//	                └─► journal, feed, records of expiries
//
// A Transition is one visit to queues. It takes a queue's lock and reads the clock. The core
// decides, consumers are offered what is ready, and what follows is handed over in order before
// the lock is given back. Done does the rest with no lock held. Transitions are pooled; none
// outlives its call.
//
// # Parts of a queue
//
//	messages    what is in the queue; how to look at it          messages.go, browse.go, deadlines.go
//	consumers   in which order they are served                   consumers.go
//	locks       deliveries with x-lock-duration                  locks.go
//	flow        when publishers have to wait for consumers       flow.go
//	Idle        x-expires and x-auto-delete-on-idle              idle.go
//	Letters     messages that have left and are to go elsewhere  letters.go
//	Retained    letters that not all targets took                retained.go
//
// # What it guarantees
//
// A message leaves for one reason, and once. The journal has the events of one queue in the
// order in which they happened. A letter in line is found by compaction until it has arrived.
// Letters go on in the order in which they left their queue, except those that wait for a
// target (x-dead-letter-strategy at-least-once): a timer has them tried again. Whether a
// deadline has come is decided by the clock as read under the lock: late is possible, early
// is not.
//
// Everything has a bound: the feed (when it is full, its reader takes a snapshot), the letters
// in line (when there are too many, whoever causes more helps to move them), and the scratch
// that is kept for the next time.
//
// # Locks
//
// A queue has one lock, messages.mu. It guards all parts of the queue and the fields of its
// consumers. No two queues are ever locked at once. Functions whose names end in Locked are
// called with the lock held, and so are the methods of the plain collections in a part, which
// know no lock (rank, consumers.add, lockLine, letterLine, enqueueTimes, tally). All others
// take it themselves.
//
// Below it come a channel's lock (Sink, LockHolder), and leaves: the feed's, the timers', the
// shrinker's, that of the pauses of all queues, the store's. Nothing under it waits for a disk
// or a network.
//
// # Calls upwards
//
// With no lock held: Queue.Registered, the declared queue, when a timer fires or an auto-delete
// queue has lost its last consumer; and the function given to Env.Init, when a transition has
// put letters in line. Under the lock: only Sink and LockHolder, which must not block.
//
// Left to others: which queues are declared, to whom they belong and how messages are routed,
// where letters go (package broker), what a policy means (queueargs), messages that are not due
// yet (delayed).
package delivery
