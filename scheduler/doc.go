// Package scheduler defines a schedule of deadlines: shadows, and the Store that keeps
// them in order of time. An Index keeps them in this process, package redisstore in Redis.
// Both pass the same suite, in the tests of this package.
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
// # Index
//
// An Index keeps a schedule in the memory of this process. Without Redis it is the only one. With
// Redis it is always fed, too, and fires when Redis does not. It is gone with the process;
// package monitor/schedule fills it again from the queues.
//
// It promises all that a Store does, exactly: a removed shadow is not claimed, one that
// was added twice exists once, Len is right at any moment. A call fails only for an
// invalid instant. Apply, Settle and Claim do no work in proportion to the size of the store, and hold the lock for 256 shadows at a time. Exceptions are
// rare: the list of a queue's pages, and the heap of those that were moved, are copied when they grow. PendingBefore takes a step for each page, First
// at most one for each queue.
//
//	                 of each queue
//	Apply ──► sorted: by deadline, seq ──► Claim ──► moved: a heap by score
//	             pages of 256 entries                       │
//	                    ▲                                   │
//	                    └──────── Apply(add) again ◄────────┤
//	                                                        └──► Settle, Apply(remove): gone
//
// A shadow is in exactly one of the two. Those that wait for their deadline, which may be
// tens of millions, take 16 bytes in a page. Pages fill completely when the deadlines of a queue arrive in order and to about 70 % when they arrive at
// random: 16 to 24 resident bytes for each shadow, and some 300 bytes for each queue that has any. Pages have no pointers, so the garbage collector does
// not scan them. The shadows that are leased or put off are few; each takes about 100 bytes, and memory that a burst needed is given back.
//
// Tenants, which are virtual hosts, take turns, one with each Claim, and in it the queues of the tenant take turns of 64 shadows (line.go). So the many
// shadows that one of them has due at once do not hold up those of the others:
//
//	  nothing due, or newly                    more is due
//	waits: by lowest score ──────► a turn ──────────────────► due: by last turn
//	   ▲                           │    ▲                          │
//	   └─── nothing is due ────────┘    └────── every other turn ──┘
//
// Considered and dropped: one Index for all queues, by time, from which what is due was set apart by queue when it was more than a claim takes. It had to
// number queues to keep entries small, and a claim of many queues with few shadows each took ten times as long.
//
// Considered and dropped: a timing wheel, or a heap with unsorted buckets by time in front
// of it. They insert faster when ten million random deadlines no longer fit the caches (a
// page is then fetched from memory, about 0.5 µs). But they notice that a
// shadow was removed, or added twice, only when its time is near. A schedule whose
// messages are mostly acked before their deadline would hold mostly garbage, and Len
// would count it.
//
// # Left to others
//
// Package monitor/schedule knows what a deadline means, fires it, and brings a Store back in
// step with the queues after it has lost something.
package scheduler
