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
//	            a rule says keep, nothing stands against it
//	observed ◄──────────────────────────────────────────────► a keeper runs, or waits for the lease
//	    │        a policy was set, a limit was reached, ...         │ keeping does harm
//	    │                                                           ▼
//	    └── the queue is gone: forgotten                      let go, until an operator allows it (Allow)
//
// A new inventory is taken when RabbitMQ tells of a change, and every 30 s; where RabbitMQ tells of nothing, every 5 s.
// What it finds goes through cluster.Decide. A keeper that ends is started again, with pauses that grow to a minute.
//
// # Several Curfews
//
// Each runs a keeper for each kept queue, and the one that has the queue's lease keeps it. A Curfew takes no more leases
// than its share, the number of queues divided by that of the Curfews that live, unless nobody else wants a queue for
// three seconds. When another Curfew joins, those that have more than their share give one queue back each second. One
// Curfew observes for all, by a lease of its own, since each of them would tell the same.
//
// Redis also records which queues were let go, so that no other Curfew keeps again where keeping did harm, and what each
// Curfew tells of the queues that it keeps or observes (report.go): every one of them shows them all, while metrics are of
// its own ones only, so that they can be added up. The keys name the RabbitMQ cluster, so nothing is written to Redis before
// RabbitMQ was reached once (join.go).
//
// # What was seen
//
// Keepers and the observer note what times to live messages have (ttl_stats.go). Decide goes by that: a queue with a time to
// live of its own is exact only as long as a tap watches it and no message with a shorter one was seen, and one of which most messages never
// expire is not worth keeping. It is forgotten when the last Curfew ends.
//
// # Guarantees
//
//   - Each expiry that is known is published once: kept queues by the Curfew that keeps them, when RabbitMQ has not
//     handed the message out again; observed queues when the message is seen to have left.
//   - Redis away: keepers and the observer go on from memory, nothing new is taken, and Health says so. Without Redis at
//     all, this Curfew keeps everything by itself, and no other may do so.
//   - Management API away: what is kept is kept on, by the facts last known.
//   - RabbitMQ away: everything is connected again when it is back; it has the messages meanwhile.
//
// # As a monitor.Primary
//
// Primary has the methods of monitor.Primary, so that alerts, metrics, audit and dashboard are the same as for Curfew's
// own queues. But its feed tells of nothing and its snapshot is empty: a keeper has each deadline in its own schedule,
// together with the channel and the delivery tag that it takes to act, and gives messages back within milliseconds. The
// monitor's index beside it would hold each deadline twice and ask the keeper to do what it does already. What a
// monitor reads from its index for people, Primary answers instead (monitor.SelfScheduled): how many deadlines wait,
// and when. The observer's queues have forecasts (monitor.Surveyor).
//
// The path of an expiry is "eager" if the keeper gave the message back at its deadline, "requeue" if RabbitMQ expired
// it when a message of unknown age was given back to find out, and "lazy" if RabbitMQ expired it by itself in a queue
// that is observed. Kept messages have no id here, since a keeper stores a hash of each message only.
//
// # Metrics
//
//	curfew_rabbitmq_queues{mode,state}                    watched queues; a kept queue counts where it has the lease
//	curfew_rabbitmq_queue_not_kept{vhost,queue,reason}    1: a rule says keep, and it is refused or let go of, or
//	                                                      some of its messages are stranded (stranded.go)
//	curfew_rabbitmq_expiry_intended{vhost,queue}          1: what expires there is not missed (a rule says keep, and not
//	                                                      alert_on_expiry); on every Curfew
//	curfew_rabbitmq_held_messages{vhost,queue}            messages held by the keeper of the queue
//	curfew_rabbitmq_held_bytes{vhost,queue}               their bodies, which RabbitMQ holds
//	curfew_rabbitmq_releases_total{vhost,queue,reason}    times that all of it was given back: a keeper.Code, and
//	                                                      consumer for all that other consumers do
//	curfew_rabbitmq_kept_lateness_seconds                 histogram: lateness of messages of known age in kept queues
//	curfew_rabbitmq_unknown_age_total                     messages taken whose age is not known: they may be late
//	curfew_rabbitmq_leases                                queues whose lease this Curfew has
//	curfew_rabbitmq_redis_up                              0 if leases cannot be renewed or taken
//	curfew_rabbitmq_inventory_age_seconds                 since the queues were last looked at
//	curfew_rabbitmq_observer_lag_seconds{vhost}           how far what the observer has read is behind
//
// Queues beyond 500 share the label "_other". The lateness of all expiries, kept and observed, is in
// curfew_deadline_lateness_seconds, which is the monitor's.
//
// # Left to others
//
// One queue is package keeper's, leases are package lease's, taps package observe's, what RabbitMQ is and what may be
// kept package cluster's. What an expiry means to people is the monitor's, to which this is a primary.
package rabbitmq
