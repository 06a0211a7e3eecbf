// Package schedule fires message deadlines when they come.
//
// A primary (a broker) expires a message lazily: when somebody looks at it. The scheduler holds a
// shadow of each deadline and asks the primary to expire the message the moment it is due, wherever
// it is in its queue. The scheduler proposes and the primary decides: a message is settled
// once, and a request that comes too late is answered "gone". So every step here may be
// repeated, and the scheduler may lose shadows, but never a message.
//
// # Loops
//
//	           read         ingest ──window──► Track ──► index ───────────┐
//	primary ─────────► batches │                           │              ▼
//	                           │                           │ near     fire ──► Expire
//	                           ▼                           ▼              ▲
//	                        write ──► Redis ── claim ──► due list ────────┘
//	reconcile: Snapshot ─► index      keep: checks Redis, Snapshot ─► Redis
//
// Each loop is a goroutine that ends only with the context of Run. One that fails or
// panics is started again after a pause, and a reconciliation makes up for what it may
// have lost; until then its curfew_scheduler_last_tick_timestamp_seconds does not change. Neither fire nor
// ingest waits for Redis: what they have to write goes into the bounded backlog of write.
//
// # Life of a shadow
//
//	Enqueued ──► window, 20 ms ──► Track ──gone──► forgotten, most of them
//	                                 │
//	                                 ▼
//	                       index (+ Redis) ──Left──► removed ──Changed──► index
//	                                 │ due
//	                                 ▼
//	     ┌──────────────────────► Expire ──expired, gone──► removed
//	     └─ in 30 s ◄── held ────────┤
//	     └─ at its deadline ◄─ not due
//
// Without Redis the index fires. With Redis, shadows are claimed 150 ms before their
// deadlines and wait on the due list, so that a deadline is not late by a round trip. The
// index fires what is 250 ms overdue, and everything while Redis is away, stuck, or not yet
// rebuilt. A shadow that is due within 150 ms when it would be written goes to the due list
// at once and is not written. Without a window (Options.WriteWindow) every shadow is
// written to Redis, even that of a message which is settled or due by then; that one is
// removed at once.
//
// # Guarantees
//
//   - Never early: instants are whole microseconds of the primary's clock, rounded up, and
//     the primary compares again.
//   - Deadlines that follow one another within 250 µs may fire together, and are late by up
//     to that much: on a busy queue most of the cost of a deadline is to wake for it.
//   - Firing waits for no tenant: a queue that is in use when its deadlines come is waited for by
//     a goroutine of its own (busy.go), and the turns of the loop, of 256 messages each, go
//     round the virtual hosts, and round the queues of each (scheduler.Index).
//   - What is due in a queue fires in order of deadline and place, unless a loop failed.
//   - When Redis is slow, stuck, emptied, replaced or away, no deadline is late by more than
//     250 ms. Once Redis is known to be away, or has let a deadline pass although it was not
//     behind with its claims, the index fires on time.
//   - Every buffer is bounded. A reconciliation makes up for what does not fit.
//   - Nothing is kept across restarts except what is in Redis, and that is a copy: the scheduler
//     starts with a snapshot of the primary.
//
// # Why reconciling loses nothing
//
// A reconciliation runs while the feed goes on. For each page of a snapshot it first adds
// the shadows to the store, then asks the primary which of them are still queued (Track),
// then removes the others. Take a message of the page that leaves its queue. If it left
// before Track answered, the removal here follows the addition. If it leaves after, the
// primary reports that (Left, or the answer to Expire), and the report is handled after the
// addition, so its removal follows, too. Messages that were enqueued after the snapshot
// began are in the feed, since the feed is opened before; for Redis, writes are let in
// before the snapshot begins. Sequence numbers are never reused, so a removal is final,
// and a shadow wrongly left behind costs one request that is answered "gone".
//
// The exception is a message that is rescheduled and then gets its old deadline back: its old
// shadow comes back, too. So such additions (Changed) are handled after the removals that
// arrived with them, and a reconciliation asks once more about what it has removed. If the
// shadow came back before that answer, it is added again here; if after, its event is
// handled after the removal.
//
// The loop that fires is not coordinated with any of this: asking twice is harmless.
//
// # Left to others
//
// The primary expires and dead-letters, and has the clock; package scheduler has the schedules;
// package monitor counts and reports what expires. Bodies and headers never come here.
package schedule
