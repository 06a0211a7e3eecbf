// Package rabbitmq puts the queues of a RabbitMQ cluster behind a monitor: a Primary keeps or observes each watched
// queue, and publishes every expiry on one stream, as Curfew's own broker does.
//
//	cluster: inventory, events ──► Decide ──kept──────► a keeper for each queue ──────┐
//	                                  │                   ▲ lease, shadows (Redis)    ├──► deadline.Stream ──► metrics, alerts,
//	                                  └──everything else─► one observer ──────────────┘                        audit, traces
//	                                                       ▲ lease, the same inventory
//
// # One queue
//
//	            a rule says keep, and nothing prevents it
//	observed ◄──────────────────────────────────────────────► a keeper runs, or waits for the lease
//	    │        a policy was set, ...; an operator pauses everything (Pause)
//	    │
//	    └── the queue is gone: forgotten
//
// A new inventory is taken when RabbitMQ reports a change, three times in the 18 s after that, and every 30 s; where RabbitMQ reports no changes, every 5 s. While
// RabbitMQ does not say how a queue is declared, it is taken every 6 s, for a minute: an idle quorum queue of a busy cluster may be told of late.
// cluster.Decide decides on each queue in it.
//
// # Several Curfews
//
// Each runs a keeper for each kept queue, and the one that has the queue's lease keeps it. An instance takes no more leases
// than its share, the number of queues divided by the number of living Curfews, unless nobody else wants a queue for three
// seconds. When another Curfew joins, those that have more than their share give one queue back each second. One Curfew
// observes for all, with a lease for that, since all of them would see the same.
//
// Redis also records whether an operator has paused everything, and what each Curfew reports about the queues that it keeps or
// observes (report.go). Every Curfew shows all queues, but its metrics
// are only about its own, so that they can be added up. The keys name the virtual host by an identity that RabbitMQ keeps, so
// nothing is written to Redis before RabbitMQ was reached once (join_group.go).
//
// # What was seen
//
// Keepers and the observer note which times to live messages have (ttl_stats.go). Decide goes by that: a queue with a time
// to live of its own is exact only as long as a tap watches it and no message with a shorter one was seen, and a queue whose
// messages mostly never expire is not worth keeping. These statistics are lost when the last Curfew ends.
//
// # Guarantees
//
//   - Each known expiry is published once. In a kept queue, the Curfew that keeps it publishes when RabbitMQ has not
//     delivered the message again; in an observed queue, the observer does when it sees that the message has left.
//   - Redis away: keepers and the observer go on from memory, nothing new is taken, and Health says so. Without Redis at
//     all, this Curfew keeps everything by itself, and no other may do so.
//   - Management API away: queues already kept stay kept, by the facts last known.
//   - RabbitMQ away: everything connects again when it is back; until then RabbitMQ has the messages.
//
// # As a source of a monitor
//
// A monitor.Monitor reports what expires here, so that alerts, metrics, audit and dashboard are the same as for Curfew's
// own queues: a Primary is its monitor.Source, and answers how many deadlines wait and when the next is due
// (monitor.Pending). Nothing fires here but the keepers: each has its deadlines in a schedule of its own, together with
// the channel and the delivery tag that it needs to act, and gives messages back within milliseconds. The observer's
// queues have forecasts.
//
// The path of an expiry is "eager" if the keeper gave the message back at its deadline, "requeue" if RabbitMQ expired
// it when a message of unknown age was given back to find out, and "lazy" if RabbitMQ expired it by itself in a queue
// that is observed. Kept messages have no id here, since a keeper stores only a hash of each message.
//
// # Left to others
//
// Package keeper keeps one queue, package delay holds one with mode delay, package lease has the leases, package observe the taps. Package cluster talks to RabbitMQ
// and decides what may be kept. What an expiry means to people is up to the monitor.
package rabbitmq
