// Package simulation contains only tests: a deterministic simulation of broker, monitors,
// schedule and journal with faults, and a check that the broker is linearizable.
//
// # Simulation
//
//	driver ── one action at a time, drawn by the seed ──┐
//	                                                    ▼
//	monitors ──── view ──────► world.call: model predicts ─► broker does ─► compare
//	   │                                                    │
//	   └── handle ────────► redis (model, faults)           └──► journal ──► image, restart
//
// The seed determines the queues and their arguments, each action, each fault, and how time
// passes. Every call into the real broker is made under one lock. A plain model of the
// broker (model*_test.go: lists that are searched from the front) predicts what the call
// does. Then everything visible is compared: answers, deliveries, byte by byte and in
// order, counts, queues, the events of the feed, lists of deadlines. In the model an entry
// can leave its queue in one place only, once, and not before its time. So that holds for a
// broker that agrees with the model, too.
//
// The seed draws from: declaring (TTL, dead-letter exchanges that lead to other queues,
// back, to several or nowhere, length limits with each overflow mode, x-expires,
// priorities, delivery limits, exclusive, auto-delete), deleting and declaring again;
// publishing in batches with expiration, absolute deadlines, CC, BCC, priority, persistence
// and forged death headers, some batches rolled back; consumers with credit, gets, ack,
// reject, requeue, the same twice; purge; lost connections; moving the clock to within a ns
// of deadlines, and forward in jumps that timers do not notice; references to messages of
// any age, some of them wrong, for Expire, Track, Reschedule and FireNow.
//
// There are two kinds of seeds:
//
//   - Without monitors only the driver proposes expiries. The history of such a seed is
//     always the same (TestSeedsReplay).
//   - With monitors, one or two real ones run beside the driver in a synctest bubble. They
//     are killed, stopped beyond their leases, lose events, have a clock that is a few ms
//     ahead, and run with or without Redis. Redis is away, silent or slow, loses replies to
//     commands that it has executed, is flushed, evicts, or fails over to a stale replica. A
//     bubble does not order goroutines: the seed determines workload and faults, but the
//     history may differ from run to run.
//
// A quarter of the seeds have a directory. Their broker is ended cleanly, or its directory
// is copied while it runs, as a killed process would leave it. The journal must then show
// exactly what the model contained after some call since the last commit. The simulation
// continues from there.
//
// # Where the invariants are checked
//
//	one end for each message and queue       model.leave, world.balance
//	nothing invented, nothing changed        compareDelivery
//	no expiry early, no delivery at or past  model.leave, compareDelivery
//	the deadline
//	unacked messages are left alone, and     model.settles, model.expire
//	expired ones do not come back
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
// reject, requeue, expire, purge, a ticking clock). Porcupine then looks for an order of
// the calls that explains every answer. Each message is a separate automaton
// (automaton_test.go); the simulation checks the order among messages.
//
// # Not simulated
//
// Sockets, the server and the wire (package integration). Power failures, torn writes, and
// failing or full disks (package store crashes at each of its disk operations;
// integration/faults). The real Redis and its scripts (testenv,
// integration/faults). Queues with x-expires beside monitors, since their timer does not
// take the world's lock; for the same reason delayed messages, locks, and at-least-once
// dead-lettering (package broker tests these in virtual time). Exchange-to-exchange
// bindings, exclusive consumers.
//
// # Replay
//
//	SIMULATION_SEEDS=2000 go test ./integration/simulation -run TestSimulation
//	SIMULATION_SEED=17 go test -v ./integration/simulation -run TestSimulation
//
// The second command prints the whole history of one seed. When an action is added, every
// seed means another history. So whatever a seed finds becomes a test of its own, in the
// package that had the fault.
package simulation
