// Package memstore keeps a schedule in the memory of this process: the only one
// where no Redis is configured, and beside Redis the index that is always fed and
// fires when Redis does not. It is gone with the process; package monitor fills it
// anew from the queues.
//
// # Guarantees
//
// Everything scheduler.Store says, exactly: a shadow removed is not claimed, one
// added twice is there once, Len is right at any moment. No call fails but for an
// invalid instant. No call does work in proportion to the size of the store, so none
// pauses it; a call with n shadows holds the lock for these n, so callers hand in
// pages.
//
// # Structure
//
//	Apply ──► tree: by deadline, queue, seq ──► Claim ──► moved: a heap by score
//	             pages of 127 entries                        and an index
//	                    ▲                                       │
//	                    └───────── Apply(add) again ◄───────────┤
//	                                                            └──► Settle, Apply(remove): gone
//
// A shadow is in exactly one of the two. Those that wait for their deadline, which
// may be tens of millions, take 16 bytes in a page: the deadline as 5 bytes that
// count from the page's base, the queue as a number of 3 bytes in place of its id, 8
// bytes of seq. Pages fill up whole when deadlines come in order and to some 70 %
// when they come at random: 16 to 24 bytes resident for each. Pages have no pointers,
// so the garbage collector does not read them, and are recycled, so a steady state
// allocates nothing. Those leased or put off are few; they take some 100 bytes, and when
// there were many for once their room is given back. Should more than 16 million queues
// have deadlines at a time, those of further ones stand with the moved too.
//
// What was thought of and dropped: a timing wheel, or a heap with unsorted buckets by
// time before it. They insert faster where ten million random deadlines no longer fit
// the caches (a tree's page is then fetched from memory, about 0.5 us), but learn what
// was removed, or added twice, only when its time comes near. A schedule whose messages
// are mostly acknowledged before their deadline would hold mostly garbage, and Len
// would count it.
package memstore
