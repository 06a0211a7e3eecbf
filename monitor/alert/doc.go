// Package alert tells people that deadlines were missed.
//
// What happens per message is added up per group (what happened, to which queue,
// with which action), and only groups are told of: a storm of a million expiries
// in one queue is a few notifications with counts.
//
//	            first event            group wait, 1 s         notified
//	(no group) ─────────────► waiting ─────────────────► told ◄──────────┐
//	    ▲                                                 │ group interval, 60 s
//	    │   resolved is told                              ├── events came ┘
//	    └─────────────────────────────────────────────────┘ none came
//
// A state (ScheduleDegraded; InstanceSilent, one for each instance) stays told until it
// ends, and is repeated every four hours with what is then known of it.
//
// # Sinks
//
// Log is always on: one line per notification. The webhook is posted to in the
// format of Alertmanager's webhook receiver, version 4, so that what receives
// Alertmanager's notifications receives these. It has a goroutine and a bounded
// queue of its own: a slow receiver delays neither the log nor whoever records.
// A sink is a name and a send function; another one is added to New.
//
// # Guarantees
//
// Record never waits for I/O and does not allocate for a known group. There are
// at most 1,000 groups, beyond which events are added up in one group for all
// other queues; at most 1,000 notifications wait for a sink, beyond which they are
// counted and the count is sent as soon as there is room. Nothing survives a
// restart; what was not told yet is logged at the end of Run.
//
// Silences, inhibition and routing are left to whatever receives.
package alert
