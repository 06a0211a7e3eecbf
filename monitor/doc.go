// Package monitor fires message deadlines when they come.
//
// A primary (a broker) expires lazily: when somebody looks. The monitor holds a
// shadow of each deadline and asks the primary to expire the message the moment it
// is due, wherever it stands in its queue. The primary decides, the monitor
// proposes: a message is settled once, and whoever comes second is told "gone". So
// every step here may be repeated, and nothing the monitor loses is a message.
//
// # Loops
//
//	           read         ingest ──window──► Track ──► index ───────────┐
//	primary ─────────► batches │                           │              ▼
//	                           │                           │ near     fire ──► Expire
//	                           ▼                           ▼              ▲
//	                        write ──► Redis ── claim ──► due list ────────┘
//	reconcile: Snapshot ─► index      keep: looks after Redis, Snapshot ─► Redis
//	alert: tells people what the others record (missed, late, held, parked, at risk)
//	forecast: how queues stand and are served ─► what will miss its deadline (alert: at risk)
//	watch: beats in Redis, and tells who does not and what is due there
//
// Each is a goroutine of its own that ends with the context of Run only. One that
// fails or panics is started again after a pause, and what it may have lost is made
// up for by a reconciliation; its heartbeat metric stands still meanwhile. Fire never
// waits for Redis, nor does ingest: what they have to say goes into write's bounded
// backlog.
//
// # Life of a shadow
//
//	Enqueued ──► window, 20 ms ──► Track ──gone──► forgotten, the most of them
//	                                 │
//	                                 ▼
//	                       index (+ Redis) ──Settled, Lapsed──► removed ──Rescheduled──► index
//	                                 │ due
//	                                 ▼
//	     ┌──────────────────────► Expire ──expired, gone──► removed
//	     └─ in 30 s ◄── held ────────┤
//	     └─ at its deadline ◄─ not due
//	     └─ in 1 s ◄── failed ───────┘
//
// Without Redis the index fires. With Redis, shadows are claimed 150 ms ahead of
// their time and wait on the due list, so that a deadline is not late by a round
// trip; the index fires what is 250 ms overdue, and everything while Redis is away,
// stuck, or not yet rebuilt. A shadow that is due within 150 ms when it would be
// written goes to the due list at once and is not written. Without a window
// (Options.WriteWindow) Redis is written every shadow, also that of a message which is
// settled or due by then; it is removed at once.
//
// # Guarantees
//
//   - Never early: instants are whole microseconds of the primary's clock, rounded
//     up, and the primary compares again.
//   - Deadlines that follow one another within 250 µs may fire together, by so much
//     late: on a busy queue most of what a deadline costs is to wake for it.
//   - Redis being slow, stuck, emptied, replaced or away delays no deadline by more
//     than 250 ms. Once it is known to be away, or has let a deadline pass without
//     having more to hand out, the index fires on time.
//   - Every buffer is bounded. What does not fit is made up for by a
//     reconciliation.
//   - Nothing is kept across restarts but what Redis holds, and that is a copy: the
//     monitor starts with a snapshot of the primary.
//
// # Why reconciling loses nothing
//
// A reconciliation runs beside the live feed. For each page of a snapshot it first
// adds the shadows to the store, then asks the primary which of them are still
// queued (Track), then removes the others. Take a message of the page that leaves its
// queue. If it left before Track answered, the removal here follows the addition. If
// it leaves after, the primary tells (Settled, or Expire's own answer), that is worked
// on after the addition, and so its removal follows, too. Messages enqueued after the
// snapshot began are in the feed, since the feed is open before; for Redis, writes
// are let in before the snapshot begins. Sequence numbers are never used again, so a
// removal is final, and a shadow wrongly left behind costs one request that is
// answered "gone".
//
// But for messages that are rescheduled, and then again to the deadline they had: their
// shadow comes back. So such additions (Rescheduled) are worked on after the removals
// they arrived with, and what a reconciliation has removed it asks about once more: if
// the shadow came back before that answer it is added again here, if after, its event
// is worked on after the removal.
//
// The loop that fires is not coordinated with any of this: expiring twice is
// harmless.
//
// # Watching each other
//
// Instances that share a Redis beat there, for as long as their deadlines fire. When one
// has not for 15 s, and deadlines of its schedule have passed, another tells (alert
// CurfewInstanceSilent): how many, since when, in which queues. That takes some 20 s
// from the last heartbeat. Nothing is fired for it, since only its own primary has the
// messages. What is told is the schedule's word: what never reached Redis is not in it,
// and what left its queue in the last moments may still be. A graceful stop is no
// silence.
//
// # Left to others
//
// Expiring, dead-lettering and the clock are the primary's; the schedules are those
// of scheduler; telling people is alert's. Bodies and headers never come here.
package monitor
