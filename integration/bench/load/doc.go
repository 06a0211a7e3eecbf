// Package load puts an AMQP 0-9-1 broker under load and measures what comes back. The
// comparison in integration/bench uses it, and `go run ./integration/bench load` against any broker.
//
// # The raw client
//
// A client library costs several times what a fast broker costs. So the default client
// frames its messages into a buffer only once, writes the time of sending into their
// bodies, writes many at a time, and counts deliveries and confirms in the read buffer
// without parsing them any further. As an alternative, the library amqp091-go (Spec.Client)
// shows what an application gets.
//
//	producer: template ─► patch times ─► write        consumer: read ─► walk frames ─► count, time ─► ack, one write a read
//	             ▲ window: confirms outstanding                                │
//	             └ backlog: messages sent and not yet consumed ◄───────────────┘
//
// # What is measured
//
// Throughput counts deliveries between the end of the warm-up and the end of the run.
// Latency is the time from just before the write that carried a message until just after
// the read that returned it, in one process with one clock. The lateness of a deadline is
// given in two ways, as far as a publisher can know it; see DeadlinesResult. Values are
// rounded only by the histogram's buckets, which are 1.6% wide.
//
// Each run has its own queues, with unique names, and ends when the broker has read
// everything that was published. So a run's figures are free of what other runs left
// behind or do at the same time.
package load
