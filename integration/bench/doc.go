// Command bench compares Curfew with other brokers on this machine, and measures it against
// its performance goals.
//
//	make bench                     everything, about fifteen minutes
//	BENCH=quick make bench         less of everything, about two minutes; the figures are rougher
//	BENCH_ONLY=P6,P9 make bench    single items
//
// It starts and stops everything itself, on free ports and in its own directory: Curfew,
// RabbitMQ (the Debian package) with classic queues of both versions and quorum queues, and
// Redis. It pins nothing to processors.
//
// # How it measures
//
// Each workload runs against each side in turn, A B C C B A A B C, in a new process of
// package load, so that the client's cost is separate. Medians are shown with the minimum
// and the maximum. Beside a rate is the cost of a message to the broker: user and system
// time of its process tree over the whole run, divided by the messages of the whole run
// (without Redis). "Bare relay" is the ceiling of client and sockets: a process that passes
// publishes on to the consumer without queues, acks or routing.
//
// A ratio is the ratio of the medians of one run. If it is judged near 1, the minimum and
// maximum of the single passes' ratios are shown as well. A goal that is not met is printed
// as such, and the exit code is still 0: this is a report. A complete run is written to
// integration/bench/results: goals.md (to which docs/benchmarks.md links),
// summary.md with every figure, results.json and curves.svg. A run of single items, or a
// quick one, has its own directory.
package main
