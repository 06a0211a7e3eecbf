// Package queue is the state machine of one message queue. It only computes: it does no
// I/O, takes no lock, starts no goroutine and reads no clock. The caller passes in the
// present instant (a deadline.Instant) and receives what follows in its Effects. Bodies stay
// in the caller's store; the queue knows them by position.
//
//	Publish, Restore ──► ready ──Take──► unacked ──Settle─► Acked, Rejected
//	                      │  ▲             │ │
//	                      │  ├──Requeue────┤ ├────Requeue─► Expired        deadline has come
//	                      │  │             │ │              DeliveryLimit  failed too often
//	                      │  └──Wake──waiting◄┘Return (Options.Retry)
//	                      ├──Take, Expire──► Expired        deadline has come (Reschedule: was made to come)
//	                      ├──Trim──────────► MaxLength
//	                      └──Purge─────────► Purged         (Clear: from unacked, too)
//
// # Guarantees
//
//   - A message leaves once. Whatever tries to settle it a second time (an ack, a lazy
//     expiry in Take, an eager one by Expire, a purge) learns that it is gone.
//   - Nothing expires early. Nothing is delivered at or after its deadline, wherever in the
//     queue it is; the one exception is a time to live of zero at the instant of
//     publishing.
//   - An unacked message belongs to its consumer and never expires. If its deadline has come
//     when it is requeued, Requeue expires it, and it is not offered again.
//   - A waiting message is not offered, and expires at its deadline like a ready one.
//   - Requeue and Return keep the deadline and the place, Reschedule the place. The order is that of
//     publishing within a priority, and higher priorities come first.
//   - A message that Track marked does not leave without an Effect that says so.
//
// # Memory and time
//
// Messages of one priority have consecutive numbers. Their entries (24 bytes, without
// pointers) are in chunks of 128, the chunks in pages of 256, the pages in a directory:
// three lookups lead from a number to its entry. Bitmaps of the ready entries, and of the
// chunks that have some, let the head skip millions of entries that are gone or unacked in a
// few steps, even if the oldest message comes back again and again. A chunk is freed when
// all its entries are gone. Up to eight are kept for reuse, so a steady flow allocates
// nothing.
//
// A full queue takes 25.1 bytes a message. An empty one takes 288 after Shrink, and 56 more
// for each further priority. The price of having no pointers: a chunk (3.2 KB) stays while
// one of its 128 messages does. Between an old message and the newer ones, each run of
// 32,768 messages that are gone costs 8 bytes.
//
// A message that waits for another try takes some 55 bytes more, in a heap by time and a map; the other
// messages do not grow.
//
// Every operation takes constant time (Return and Wake logarithmic), whatever is in the queue, so that whoever holds the queue's
// lock does not hold it for long. Take and Trim settle at most AtOnce messages in one call, and the
// caller goes on with another one. Purge and Clear take all messages out at once, as an object of
// its own, which Sweep settles in steps. A message that was unacked at a purge moves back into the
// queue when it is needed there, or when Sweep passes it.
//
// A map of messages with a slice for the order was measured four times slower. It needs
// several times the memory, much of which the collector has to scan.
//
// # Left to others
//
// Durability (broker/store); locking, consumers, dead-lettering and reading the clock
// (broker); waking up at deadlines (scheduler).
package queue
