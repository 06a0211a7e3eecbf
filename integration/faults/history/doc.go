// Package history judges a broker by what its clients saw.
//
// While a test runs, its clients write to a Log what they are about to do and what the
// broker has answered: published, confirmed, delivered, acked. The log also says when a
// broker process begins and ends; that time is called a life. Check then reads the log,
// without knowing anything else about the broker, and names each promise that the history
// breaks.
//
// # Why the order of lines proves something
//
// A client writes down an action before it acts, and an answer after it has received it. So
// if one line comes before another, the answer on the first line is older than the action
// on the second, whoever wrote them; no clocks are compared. Clocks are compared only for
// deadlines: a message is published after the time of its line and confirmed before the
// time of the confirm's line, so its deadline lies between the two times, each plus the
// time to live.
//
// # One copy of a message
//
// A message that is published to two queues is two copies, each identified by the message
// and its first queue. A copy is always in one place, and ends once:
//
//	            deliver           ack
//	its queue ──────────► held ─────────► ended
//	   │  ▲ └─ requeue, close ─┘
//	   │                    └── reject ──► ended, where the queue has no dead-letter queue
//	   │ expired, maxlen        │ rejected
//	   ▼                        ▼
//	dead-letter queue ◄─────────┘ ─ deliver ─► held ── ack, reject ──► ended
//
// When a process is killed, what clients did last may be undone, so places and ends are
// judged within one life. The rules Lost and Durable say what must hold across lives.
//
// # Left to others
//
// Check does not know which messages a queue held that is purged or deleted: none of them has
// to come, and any may. It does not understand dead letters that die again. Metrics measure how late a deadline was.
package history
