// Package clock is the clock by which deadlines are set and checked. It also converts instants to and
// from the wall clock.
//
// A Clock counts Unix ns and does not run backwards. The broker's own is the wall clock at the
// start plus the time since then, suspend included: a step of the wall clock neither expires a
// message early nor keeps it alive. With a data directory the clock continues over restarts
// (Continue), so a deadline means the same before and after.
//
// Instants of this clock are Unix µs. Deadlines are counted from the present instant rounded up
// (Stamp) and compared with it rounded down (Now): late is possible, early is not. Times that users
// give and see are by the wall clock, in ms. They are converted by how far the clock is ahead of it
// at that moment (Kept.Instant, Kept.UnixMillis).
//
// Reading it takes no system call.
//
// # Timers
//
// A Set wakes queues, exchanges and schedules of delayed messages, each at the instant that it has asked for. It has one
// goroutine and one timer for all. A Shrinker lets those that have become empty release memory; it has a timer only while
// something is empty. So an idle broker does nothing. Nothing here survives a restart: each asks again.
//
// Everything is safe for concurrent use.
package clock
