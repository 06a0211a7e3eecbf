// Package memstore keeps a schedule in the memory of this process. Without Redis it is
// the only one. With Redis it is the index, which is always fed and fires when Redis does
// not. It is gone with the process; package monitor fills it again from the queues.
//
// # Guarantees
//
// All that scheduler.Store promises, exactly: a removed shadow is not claimed, one that
// was added twice exists once, Len is right at any moment. A call fails only for an
// invalid instant. No call does work in proportion to the size of the store, so none
// blocks it for long. A call with n shadows holds the lock for n, so callers pass pages.
//
// # Structure
//
//	Apply ──► tree: by deadline, queue, seq ──► Claim ──► moved: a heap by score
//	             pages of 127 entries                        and an index
//	                    ▲                                       │
//	                    └───────── Apply(add) again ◄───────────┤
//	                                                            └──► Settle, Apply(remove): gone
//
// A shadow is in exactly one of the two. Those that wait for their deadline, which may be
// tens of millions, take 16 bytes in a page: 5 for the deadline, counted from the page's
// base, 3 for the number that replaces the queue's id, 8 for the sequence number. Pages
// fill completely when deadlines arrive in order and to about 70 % when they arrive at
// random: 16 to 24 resident bytes for each. Pages have no pointers, so the garbage
// collector does not scan them, and are recycled, so a steady state allocates nothing. The
// shadows that are leased or put off are few; each takes about 100 bytes, and memory that a
// burst needed is given back. If more than 16 million queues have deadlines at a time, the
// shadows of further queues are kept with the moved ones.
//
// A Fair has a Store for each tenant, which is a virtual host, and claims from them in turn. So the
// many shadows that one of them has due at once do not hold up those of the others.
//
// Considered and dropped: a timing wheel, or a heap with unsorted buckets by time in front
// of it. They insert faster when ten million random deadlines no longer fit the caches (a
// page of the tree is then fetched from memory, about 0.5 µs). But they notice that a
// shadow was removed, or added twice, only when its time is near. A schedule whose
// messages are mostly acked before their deadline would hold mostly garbage, and Len
// would count it.
package memstore
