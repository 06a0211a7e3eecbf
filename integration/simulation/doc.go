// Package simulation holds only tests: a deterministic simulation of broker,
// monitors, schedule and journal with faults, and a check that the broker is
// linearizable.
//
// # Simulation
//
//	driver ── one action at a time, drawn by the seed ──┐
//	                                                    ▼
//	monitors ── view, gate ──► world.call: model predicts ─► broker does ─► compare
//	   │                                                    │
//	   └── handle, gate ──► redis (model, faults)           └──► journal ──► image, restart
//
// A seed decides the queues and their arguments, each action, each fault, and how
// time passes. Every call into the real broker is made under one lock. A plain
// model of the broker (model*_test.go: lists searched from the front) predicts what
// the call does, and then all that can be seen is compared: answers, deliveries with
// every byte and in order, counts, queues, what the feed tells, lists of deadlines.
// Since the model lets an entry leave its queue in one place only, once, and not
// before its time, a broker that agrees with it does so, too.
//
// What the seed draws from: declaring (TTL, dead-letter exchanges that lead to other
// queues, back, to several or nowhere, lengths with each overflow mode, x-expires,
// priorities, delivery limits, exclusive, auto-delete), deleting and declaring anew;
// publishing in batches with expiration, absolute deadlines, CC, BCC, priority,
// persistence, forged death headers, some of them rolled back; consumers with credit, gets, ack, reject, requeue, the same twice;
// purge; lost connections; the clock stepped to the ns around deadlines, and forward
// in jumps that timers do not notice; references to messages of any age, some of
// them wrong, put to Expire, Track, Reschedule and FireNow.
//
// Two kinds of seeds:
//
//   - Without monitors the driver alone asks for expiries. Such a history is the same
//     each time (TestSeedsReplay).
//   - With monitors, one or two of the real ones run beside the driver in a synctest
//     bubble: killed, stopped past their leases, losing events, with a clock that is
//     a few ms ahead, with or without Redis. That is away, silent, slow, loses
//     replies of what it has executed, is flushed, evicts, or fails over to a stale
//     replica. A bubble does not order goroutines: workload and faults are the
//     seed's, the history may differ from run to run.
//
// A quarter of the seeds have a directory. Their broker is ended cleanly, or
// its directory is copied while it runs, as a killed process would leave it.
// What the journal then shows must be what the model held after some call since
// the last commit, to the message, and the simulation goes on from there.
//
// # Where the invariants are checked
//
//	one end for each message and queue       model.leave, world.balance
//	nothing invented, nothing changed        compareDelivery
//	no expiry early, no delivery at or past  model.leave, compareDelivery
//	the deadline
//	unacked messages are left alone, due     model.settles, model.expire
//	ones do not come back
//	place and deadline kept over requeue     model.requeue, compareDelivery
//	death headers, cycles                    entry.history, entry.deadLetter
//	late by 250 ms at most, whatever Redis   checkLateness
//	does
//	schedule and index converge              compareSchedule, compareIndexes
//	confirmed is there after a crash, a dead world.recovered
//	letter in one place
//	the broker's own totals                  world.balance
//
// # Histories
//
// TestHistoriesAreLinearizable lets goroutines race on one queue (publish, get, ack,
// reject, requeue, expire, purge, a ticking clock), and has porcupine look for an
// order of the calls that explains every answer. Each message is an automaton of its
// own (automaton_test.go); order among messages is the simulation's to check.
//
// # Not simulated
//
// Sockets and the server, the wire (package integration). Power cuts, torn writes
// and failing or full disks (package store crashes at each of its disk operations;
// integration/faults). The real Redis and its scripts (scheduler/storetest,
// integration/faults). Queues with x-expires beside monitors, since their timer
// asks nobody for the lock, and for the same reason delayed messages, locks and
// dead-lettering at least once (package broker has them in virtual time). Exchanges between exchanges, exclusive consumers.
//
// # Replay
//
//	SIMULATION_SEEDS=2000 go test ./integration/simulation -run TestSimulation
//	SIMULATION_SEED=17 go test -v ./integration/simulation -run TestSimulation
//
// The second prints the whole history of one seed. A seed means another history as
// soon as an action is added, so what it found becomes a test of its own, where the
// fault was.
package simulation
