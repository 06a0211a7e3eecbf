// Package lease is what several Curfews that keep queues of one RabbitMQ share in Redis: who keeps which queue, and
// the deadlines of the messages held, so that the next keeper knows them.
//
// # Keys
//
// One hash tag per queue, so that all of a queue lies on one node of a cluster:
//
//	{curfew:keep:<cluster>:<vhost>:<queue>}:lease        string: the keeper's name and a random part; expires after 3 s
//	{curfew:keep:<cluster>:<vhost>:<queue>}:minutes      sorted set: the minutes that have shadows, by Unix minute;
//	                                                     expires two minutes after the last of them
//	{curfew:keep:<cluster>:<vhost>:<queue>}:at:<minute>  string: 16 bytes per shadow: fingerprint, deadline in µs times
//	                                                     two, plus one if the age is unknown; expires two minutes after
//	                                                     its minute
//
// And for all of a virtual host:
//
//	{curfew:keep:<cluster>:<vhost>}:members  sorted set: names and random parts of the Curfews that live, by the Unix ms
//	                                         until which that is valid, 3 s after each beat; expires after a minute
//	                                         without a beat
//	{curfew:keep:<cluster>:<vhost>}:reports  hash: what each of them says of itself, and goes with it
//	{curfew:keep:<cluster>:<vhost>}:let-go   hash: queues that nobody may keep until an operator allows it, with the
//	                                         reasons
//
// cluster is the name that the RabbitMQ cluster has (rabbitmqctl set_cluster_name, or that of its first node), so that
// Curfews beside different clusters may share a Redis database if these have different names. cluster, vhost and queue
// are percent-encoded. The lease of the queue with the empty name is that of observing.
//
// # Guarantees
//
// A lease has one holder by Redis's clock. It is advice: RabbitMQ hands each message to one consumer at a time,
// whatever the leases say, so a lease that is lost by a stall, a failover or a flush costs order, never a message. A
// keeper that is killed is followed by another within 5 s: 3 s until its lease ends, and 1 s between tries.
//
// Shadows are written in batches by a goroutine of their own; nothing waits for it. What is not written because Redis
// is away is dropped, and all is written again when Redis is back, or has lost what it had. A deadline that is missing
// makes the age of its message unknown to the next keeper, and one too many is of no consequence.
//
// Rights the Redis user needs: +get +set +del +eval +evalsha +append +expireat +zadd +zrange +zrem +zremrangebyscore +exists
// +hgetall +hset +hdel +time on
// ~{curfew:keep:*.
package lease
