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
// # Clock
//
// A Clock is what deadlines are set and checked by. It counts Unix ns and does not run
// backwards. The broker's own is the wall clock at the start plus the time since then,
// suspend included: a step of the wall clock neither expires a message early nor keeps it
// alive. With a data directory the clock continues over restarts
// (ContinueClock), so a deadline means the same before and after.
//
// Instants of this clock are Unix µs. Deadlines are counted from the present instant rounded up
// (Stamp) and compared with it rounded down (Now): late is possible, early is not. Times that users
// give and see are by the wall clock, in ms. They are converted by how far the clock is ahead of it
// at that moment (KeptClock.Instant, KeptClock.UnixMillis).
//
// Reading it takes no system call.
//
// # Timers
//
// Timers wake queues, exchanges and schedules of delayed messages, each at the instant that it has asked for. There is
// one goroutine and one timer for all, so an idle broker does nothing. Nothing here survives a restart: each asks again.
//
// Clocks and Timers are safe for concurrent use.
//
// # Left to others
//
// The order of deadlines and their text form belong to package scheduler; the rules by
// which a message expires belong to package broker/queue.
package deadline
