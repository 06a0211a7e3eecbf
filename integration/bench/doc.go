// Command bench compares Curfew with its peers on this machine and holds it to its goals for speed.
//
//	make bench                     all of it, some fifteen minutes
//	BENCH=quick make bench         less of everything, some two minutes; figures are rougher
//	BENCH_ONLY=P6,P9 make bench    single items
//
// It starts and stops everything itself, on free ports and in a folder of its own: Curfew, RabbitMQ (the Debian package)
// with classic queues of both versions and quorum queues, and Redis. It pins nothing to processors.
//
// # How it measures
//
// Each workload runs against each side in turn, A B C C B A A B C, in a fresh process of package load, so that what the
// client costs is its own; medians are shown with the least and the most. Beside a rate stands what a message cost the
// broker: user and system time of its process tree over the whole run, by the messages of the whole run (that of Redis is
// not in it). "Bare relay" is
// the ceiling of client and sockets: a process that hands publishes on to the consumer without queues, acks or routing.
//
// A ratio is of medians of one run; beside one that is judged near 1 stand the least and the most of the passes' own. A goal
// that is not met is printed as such, and the exit code stays 0: this is a report. A whole run is written to
// integration/bench/results: goals.md (which `make bench-readme` puts into README), summary.md with every figure,
// results.json, curves.svg. One of single items, or a quick one, goes to a folder of its own.
package main
