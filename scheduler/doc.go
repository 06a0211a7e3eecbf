// Package scheduler says what a schedule of deadlines is: shadows, and the Store
// that keeps them in order of time. Package memstore keeps them in this process,
// package redisstore in Redis; storetest is what both must pass.
//
// # Protocol
//
// A Shadow stands for a queued message with a deadline. It has no payload and decides
// nothing: whoever claims it asks the queue, under the queue's lock, whether that
// very message is still there and due. So every step may be repeated, come late or
// come twice, and a Store may lose or resurrect shadows without harm but for
// lateness.
//
//	Apply(add, remove)     as messages enter and leave queues
//	Claim(until, lease)    what is due; next says when to wake again
//	   ask the queue: expired, gone, held, not due, or no answer
//	Settle(done, later)    expired and gone: done; the others may be put off
//
// # Lease
//
// Claiming a shadow removes nothing. It moves the score on, in the same set, to the
// end of a lease: a span in which the claimer is expected to have asked and settled,
// some seconds where that takes milliseconds. Others do not see the shadow as due
// meanwhile. If the claimer dies, or the reply to its claim is lost, the shadow comes
// due again by itself when the lease ends; nobody needs to look for orphans, since
// there is no second place where a claimed shadow could be forgotten. If the claimer
// is only slow, two ask the queue, and the second is told "gone". The lease spares
// work; being right does not depend on it.
//
//	        Apply(add)              Claim
//	absent ────────────► waiting ────────────► leased ───┐ its end: a claim
//	   ▲                 │  ▲  ▲                │  │  ▲  │ takes it again
//	   │                 │  │  └─ Apply(add), ──┘  │  └──┘
//	   │                 │  │     Settle(later)    │
//	   │                 └──┘ the same             │
//	   └──── Apply(remove), Settle(done) ──────────┘ or while waiting
//
// A waiting shadow stands at its deadline, or where Settle put it off to. Adding one
// that is there already puts it back at its deadline, which costs a needless question
// at most. Nothing happens by itself when a deadline, a delay or a lease ends; a claim
// may take the shadow from then on.
//
// # Time
//
// A Store has no clock. The claimer says until when it claims, by the clock of the
// primary, since that clock stamped the deadlines and will judge them: claimed by
// another one that is ahead, shadows would only be turned away, and by one behind
// they would fire late. Instants are whole µs; who sleeps until one rounds up: late is
// allowed, early never.
//
// # Left to others
//
// What a deadline means, what to do with a message whose time has come, keeping a
// Store in step with the queues after it lost something: package monitor.
package scheduler
