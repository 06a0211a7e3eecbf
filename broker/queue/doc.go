// Package queue is the state machine of one message queue. It computes only: no
// I/O, lock, goroutine or clock. The present instant comes in as now (Unix µs),
// consequences go out into the caller's Effects, bodies stay in the caller's
// store and are known here by position.
//
//	Publish, Restore ──► ready ──Take──► unacked ──Ack────► Acked
//	                      │  ▲             │ ├────Reject──► Rejected
//	                      │  │             │ │
//	                      │  └──Requeue────┘ └────Requeue─► Expired        deadline came meanwhile
//	                      │                                 DeliveryLimit  failed too often
//	                      ├──Take, Expire──► Expired        deadline came (Reschedule: was made to come)
//	                      ├──Trim──────────► MaxLength
//	                      └──Purge─────────► Purged         (Drain: from unacked, too)
//
// # Guarantees
//
//   - A message leaves once. Whoever settles second (an ack, a lazy expiry in
//     Take, an eager one by Expire, a purge) is told that it is gone.
//   - Nothing expires early, and nothing is delivered at or after its deadline
//     (save a time to live of zero in the instant it comes), wherever in the
//     queue it stands.
//   - An unacked message is its consumer's: it never expires. If its deadline
//     came meanwhile, Requeue expires it and it is not offered again.
//   - Requeue keeps the deadline and the place, Reschedule the place. Order is that of publishing
//     within a priority, the higher priority first.
//   - A message that Track marked never leaves untold.
//
// # Memory and time
//
// Messages of one priority have consecutive numbers. Their entries (24 bytes,
// without pointers) stand in chunks of 128, the chunks in pages of 256, the
// pages in a directory: a number is its place, found by three lookups. Bitmaps
// of ready entries and of chunks having some let the head move past millions of
// entries that are gone or unacked in a few steps, also when the oldest message
// comes back again and again. A chunk goes as soon as its entries are all gone;
// up to eight are kept for reuse, so a steady flow allocates nothing.
//
// A full queue takes 25.1 bytes a message, an empty one 240 once it was told to
// Shrink (and 56 for each further priority). The price of having no pointers: a
// chunk (3.2 KB) stays while one of its 128 messages does. What is gone between
// an old message and the newer ones costs 8 bytes for 32768 messages.
//
// Every operation on one message takes constant time. Take, Trim, Purge and
// Drain also take time for each message they settle, with no bound on how many.
//
// A map of messages beside a slice for the order was measured four times slower
// and needs several times the memory, much of it for the collector to scan.
//
// # Left to others
//
// Durability (broker/store), locking, consumers, dead-lettering and when to
// look at the clock (broker), waking up at deadlines (scheduler).
package queue
