// Package deadline is the vocabulary in which a broker, a schedule and a monitor talk
// about the deadlines of messages. It imports none of them, so that all of them can use
// it.
//
// # Time
//
// An Instant is a point in time in Unix microseconds. The instants of one broker are all
// read from one clock: the broker stamps deadlines with it and judges them by it.
// Instants are whole microseconds, because scores in Redis are exact only up to 2^53.
// A Millis is a number of milliseconds, the unit in which AMQP gives times to live and
// in which spans are shown to people.
//
// A deadline may fire late, but never early. So a conversion that loses precision rounds
// up, with one exception: the present instant (At) rounds down, because an instant has
// come only when it is over.
//
// # Identity
//
// A Ref names one message in one queue by its deadline, the queue's number and the
// message's number in the queue. It is what a schedule stores (package scheduler calls
// the stored copy a shadow), what the monitor claims, and what it hands to the broker to
// expire.
//
// # Events and expiries
//
// An Event says that the set of deadlines has changed. Events keep an index in step with
// the queues; they do not say why a message left. The feed of events is bounded and may
// lose some; then the index is rebuilt from a snapshot.
//
// An Expiry says that a message expired: how its expiry was noticed (Path), what became
// of the message (Action), and how late (Lateness).
//
//	Enqueued ──► Left                     events: the index
//	    │         ▲
//	    ▼         │
//	 deadline ──► expired ──► Expiry      the record: metrics, alerts, audit, traces
//
// # Left to others
//
// The order of deadlines and their text form belong to package scheduler; the rules by
// which a message expires belong to package broker/queue.
package deadline
