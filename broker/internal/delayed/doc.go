// Package delayed keeps the messages that are published with a delay (x-delay,
// x-scheduled-enqueue-time) until they are due: one Schedule for each virtual host.
//
//	Batch ─► Schedule ─► heap of due times ─► timer ─► letters in line ─► whoever forwards
//
// Each Schedule keeps its messages in a core of its own (broker/queue), in the order of publishing, with the
// instant it is due as its deadline, under the exchange and key it was published with. So it
// is kept, compacted and found again after a restart as messages of queues are. When it is
// due, it leaves as a letter, and whoever forwards letters routes it as if it was published
// then: it leaves here and enters its queues in one record, as a dead letter does.
//
// # What it guarantees
//
// A message leaves once: due, cancelled, or because its virtual host was deleted. It is due
// by the clock read under the lock: late is possible, early is not. Messages of one instant
// leave in the order of publishing. A message whose targets did not take it is retained and
// tried again.
//
// The monitor is not told of these messages: being due is not an expiry, and they have to
// leave on time without it. One goroutine and one timer serve all schedules
// (delivery.Env.DelayedTimers); at most delivery.ExpireAtOnce messages leave under one lock.
//
// Left to others: routing, definitions, and for whom a message waits (package broker).
package delayed
