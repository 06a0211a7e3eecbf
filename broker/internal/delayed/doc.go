// Package delayed keeps the messages that are published with a delay (x-delay,
// x-scheduled-enqueue-time) until they are due: one Schedule for each virtual host.
//
//	Batch ─► Schedule ─► heap of due times ─► timer ─► letters in line ─► forwarding
//
// Each Schedule keeps its messages in a core of its own (broker/queue), in the order of publishing.
// A message has the instant at which it is due as its deadline, and keeps the exchange and key that
// it was published with. So it is stored, compacted and recovered after a restart like a message in
// a queue. When it is due it leaves as a letter, and package forward routes it as if it were
// published at that moment: it leaves here and enters its queues in one record, as a dead letter
// does.
//
// # What it guarantees
//
// A message leaves once: because it is due, is cancelled, or its virtual host is deleted. It is due
// by the clock as read under the lock: late is possible, early is not. Messages that are due at the
// same instant leave in the order of publishing. A message that its targets did not accept is
// retained and tried again.
//
// The monitor does not learn about these messages: being due is not an expiry, and they have to
// leave on time without it. One goroutine and one timer serve all schedules
// (delivery.Env.DelayedTimers); at most queue.AtOnce messages leave under one lock.
//
// Left to others: routing (topology), moving what is due (forward), and finding the queues for which
// a message waits (package broker).
package delayed
