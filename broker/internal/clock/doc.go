// Package clock tells the time that deadlines are stamped and judged with, and converts it to
// and from what the wall clock says.
//
// A Clock counts Unix ns and does not run backwards. The broker's own is the time the machine
// has been up, suspend included, from what the wall clock said at first: stepping the wall
// clock neither expires a message early nor keeps it alive. With a data directory the clock goes
// on over restarts (Continue), so a deadline means the same before and after.
//
// Instants of this clock are Unix µs. Deadlines are stamped with the present instant rounded up
// (Stamp) and judged against it rounded down (Now): late is possible, early is not. What users
// give and are shown is of the wall clock, in ms, and converted by how far the clock is ahead of
// it at that moment (Kept.Instant, Kept.UnixMillis).
//
// Safe for concurrent use; reading it takes no system call. Left to others: waking up.
package clock
