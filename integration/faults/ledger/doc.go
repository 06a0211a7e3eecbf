// Package ledger judges a broker by what its clients saw.
//
// While a test runs, its clients write to a Log what they are about to do and what
// they were told: published, confirmed, delivered, acked, and where the life of a
// broker process begins and ends. Check then reads the log, by itself and knowing
// nothing of the broker, and names each promise that the history breaks.
//
// # Why the order of lines proves something
//
// A client writes what it does before it does it, and what it is told after it was
// told. So if one line stands before another, what the first was told is older than
// what the second does, whoever wrote them; no clock is compared. Clocks are compared
// for deadlines only: a message is published after its line's time and confirmed
// before that line's, so the deadline lies between the two, each plus the time to live.
//
// # One copy of a message
//
// A message published to two queues is two copies, named by message and first queue.
// A copy is always in one place, and ends once:
//
//	            deliver           ack
//	its queue ──────────► held ─────────► ended
//	   │  ▲ └─ requeue, close ─┘
//	   │                    └── reject ──► ended, where the queue has no dead-letter queue
//	   │ expired, maxlen        │ rejected
//	   ▼                        ▼
//	dead-letter queue ◄─────────┘ ─ deliver ─► held ── ack, reject ──► ended
//
// When a process is killed, what clients did last may be undone, so places and ends
// are judged within one life. What must hold across lives is in the rules Lost and
// Durable.
//
// # Left to others
//
// Histories of queues that are deleted or purged, and dead letters that die again,
// are not understood. How late a deadline was is for the metrics.
package ledger
