// Package deliveries is what one channel delivers to its client: its consumers with their
// prefetch limits, the messages that the client has not settled, and how it settles them.
//
//	broker.Queue ─► Consumer.Pull, Deliveries.Get ─► outbox
//	                     │ delivery tag, credit
//	                     ▼
//	                  ring of unacked ─► Settle ─► Batch ─► broker.Queue.Messages.Settle
//	                     │        ▲
//	                     └ Defer ─┘ (transactional channels) ─► TakeDeferred
//
// A delivery has a tag, which is its place in the ring, from when it is sent until it is
// settled. A delivery of a consumer counts against the consumer's prefetch and the channel's
// (sharedPrefetch). In a transaction a settlement is deferred until the commit.
//
// A message whose lock lapses goes back to its queue. Its delivery stays in the ring, so that
// settling it is refused with a reason; if it was deferred, the commit is refused.
//
// An Outbox gathers the frames that go to one client, and writes them to its socket. Memory counts what the client makes the
// broker hold (usage.go), and pooled buffers hold frames while they are sent or parsed (buffers.go), so that an idle
// connection holds next to nothing.
package deliveries
