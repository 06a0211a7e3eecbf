// Package scheduler defines a schedule of deadlines: shadows, and the Store that keeps
// them in order of time. Package memstore keeps them in this process, package redisstore
// in Redis. Both pass the same suite, in the tests of this package.
//
// # Protocol
//
// A shadow stands for a queued message with a deadline. It has no payload and decides
// nothing: whoever claims it asks the queue, under the queue's lock, whether that
// message is still queued and due. So every step may be repeated, be late or happen
// twice. If a Store loses a shadow, or brings one back, the worst that follows is a late
// expiry.
//
//	Apply(add, remove)     as messages enter and leave queues
//	Claim(until, lease)    what is due; next says when to wake again
//	   ask the queue: expired, gone, held, not due, or no answer
//	Settle(done, later)    expired and gone: done; the others may be put off
//
// # Lease
//
// Claiming a shadow removes nothing. It moves the score, in the same set, to the end of a
// lease: the time in which the claimer is expected to ask the queue and settle. That
// takes milliseconds, and a lease lasts seconds. Until it ends, others do not see the
// shadow as due. If the claimer dies, or the reply to its claim is lost, the shadow becomes
// due again when the lease ends. Nobody has to look for orphans, since there is no
// second place where a claimed shadow could be forgotten. If the claimer is only slow,
// two ask the queue, and the second is answered "gone". The lease saves work;
// correctness does not depend on it.
//
//	        Apply(add)              Claim
//	absent ────────────► waiting ────────────► leased ───┐ its end: a claim
//	   ▲                 │  ▲  ▲                │  │  ▲  │ takes it again
//	   │                 │  │  └─ Apply(add), ──┘  │  └──┘
//	   │                 │  │     Settle(later)    │
//	   │                 └──┘ the same             │
//	   └──── Apply(remove), Settle(done) ──────────┘ or while waiting
//
// The score of a waiting shadow is its deadline, or the instant that Settle put it off
// to. Adding a shadow that exists already sets the score back to the deadline, which
// costs at most one needless question. Nothing happens by itself when a deadline, a
// delay or a lease ends: from then on a claim may take the shadow.
//
// # Time
//
// A Store has no clock. The claimer passes the instant up to which it claims, by the
// primary's clock, since that clock stamped the deadlines and will judge them. With a
// clock that is ahead, shadows would only be turned away; with one that is behind, they
// would fire late. Instants are whole µs. A caller that sleeps until one rounds up: late
// is allowed, early never.
//
// # Left to others
//
// Package monitor knows what a deadline means, fires it, and brings a Store back in step
// with the queues after it has lost something.
package scheduler
