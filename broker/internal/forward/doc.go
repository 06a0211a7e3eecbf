// Package forward moves messages that have left a queue to where they go: dead letters, delayed messages that are due,
// and the receipts of expiries. A message on its way is a letter; it waits in line at the queue that it has left
// (delivery.Letters).
//
//	delivery: a queue has letters ─► Forwarder, a goroutine for each virtual host, a turn for each queue in rotation
//	                                    │
//	     where it goes: topology.Routes ┤ what it becomes: x-death, first death (dead_letter.go)
//	                                    ▼
//	                 a batch enters the target queues ─► one journal record: left there, arrived here
//
// # Guarantees
//
// A letter is in its old queue or in its new ones, never in both or in neither, even after a crash: a single record
// covers both. Letters of one queue keep their order, unless they have to wait for a target (x-dead-letter-strategy
// at-least-once). A dead letter without a target is parked in curfew.undeliverable, or dropped if Options.Drop says so.
// A letter that has died too often is parked as well, so that cycles end.
//
// # Turns
//
// A turn is bounded, by time, and in letters and in entries of queues (turn.go). Each virtual host with letters has a
// goroutine, in which its queues take turns. So the dead letters of one tenant do not delay another's but by the time of
// the processor, which is yielded after each turn and, while a letter's way is looked for, every half millisecond
// (exchange.Pace). There are as many of these goroutines as virtual hosts whose letters are being moved. An expiry by a
// timer or by Expire leaves all letters to them. A publish, an acknowledgement and a get take the first turn themselves,
// and help while too many letters wait. Within a virtual host every second turn is of a queue that has had none since it had
// letters, and turns are shorter the more queues wait: a queue with few letters waits neither for those with many, nor for
// thousands. What they caused may then still be in line: another turn of the queue goes on, or
// many letters are before it. Whoever tells a client that it is safe waits for that (delivery.Letters.After).
//
// # Concurrency
//
// All methods but Init are safe for concurrent use. The Forwarder's mutex guards the VHostLetters of all virtual hosts
// and is a leaf. A turn locks the queue that its letters left and the queues that they enter, one after another, never
// two at once. At most one turn at a time moves letters of a queue.
//
// # Delayed messages
//
// A Schedule for each virtual host keeps the messages that are published with a delay (x-delay,
// x-scheduled-enqueue-time) until they are due. They are in a core of its own (broker/queue), in the order of publishing,
// each with the instant at which it is due as its deadline, and with the exchange and key that it was published with. So it
// is stored, compacted and recovered after a restart like a message in a queue. When it is due it leaves as a letter and is
// routed as if it were published at that moment: it leaves here and enters its queues in one record.
//
// A message leaves once: because it is due, is cancelled, or its virtual host is deleted. It is due by the clock as read
// under the lock: late is possible, early is not. Messages that are due at the same instant leave in the order of
// publishing. One that its targets did not accept is retained and tried again. The monitor does not learn about these
// messages: being due is not an expiry, and they have to leave on time without it. One goroutine and one timer serve all
// schedules (delivery.Env.DelayedTimers); at most queue.AtOnce messages leave under one lock.
//
// A message with a message-id is also found by that, its exchange and its publisher (names.go), for the commands by which
// its publisher cancels, replaces or reschedules it (command.go). A command is an item of a batch among the messages of the
// same publisher. Under the lock it or the message's time wins, by the clock. Its answer is sent when its record is safe.
//
// Left to others: what has left a queue and why (delivery, broker/queue), what is declared (topology), and the queues for
// which a delayed message waits (broker).
package forward
