// Package load puts an AMQP 0-9-1 broker under load and measures what comes back. It is what `curfew bench` and the
// comparison under integration/bench run, against any broker.
//
// # The raw client
//
// A client library costs several times what a fast broker does, so the default client frames messages into a buffer once,
// patches the time of sending into their bodies, writes them many at a time, and counts deliveries and confirms in the
// read buffer without parsing them further. The library amqp091-go stands beside it (Spec.Client), for what an
// application gets.
//
//	producer: template ─► patch times ─► write        consumer: read ─► walk frames ─► count, time ─► ack, one write a read
//	             ▲ window: confirms outstanding                                │
//	             └ backlog: messages sent and not yet consumed ◄───────────────┘
//
// # What is measured
//
// Throughput counts deliveries between the end of the warm-up and the end of the run. Latency is from the instant before
// the write that carried a message to the instant after the read that brought it back, in one process with one clock.
// Lateness of a deadline is told from both ends of what a publisher can know, see DeadlinesResult. Nothing is rounded but
// into the histogram's buckets, which are 1.6% wide.
//
// Each run has queues of its own, by name, and ends when the broker has read all that was published: what one leaves
// behind, and what runs beside it, is in no other's figures.
package load
