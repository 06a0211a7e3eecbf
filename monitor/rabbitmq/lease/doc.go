// Package lease is what several Curfews that keep queues of one RabbitMQ share in Redis: who keeps which queue, and
// the deadlines of the messages held, so that the next keeper knows them.
//
// # Keys
//
// One hash tag per queue, so that all keys of a queue are on one node of a Redis cluster:
//
//	{curfew:keep:<cluster>:<vhost>:<queue>}:lease        string: the keeper's name and a random part; expires after 3 s
//	{curfew:keep:<cluster>:<vhost>:<queue>}:minutes      sorted set: the minutes that have shadows, by Unix minute;
//	                                                     expires two minutes after the last of them
//	{curfew:keep:<cluster>:<vhost>:<queue>}:at:<minute>  string: 16 bytes per shadow: fingerprint, deadline in µs times
//	                                                     two, plus one if the age is unknown; expires two minutes after
//	                                                     its minute. Those of a delay queue last a week, unless the
//	                                                     keeper has settled all that was due then
//
// And for each virtual host:
//
//	{curfew:keep:<cluster>:<vhost>}:members  sorted set: names and random parts of the living Curfews, each valid until
//	                                         its score in Unix ms, 3 s after its last beat; expires after a minute
//	                                         without a beat
//	{curfew:keep:<cluster>:<vhost>}:reports  hash: what each of them reports; removed together with its member
//	{curfew:keep:<cluster>:<vhost>}:pause    string: paused while an operator has paused everything, resumed for a day
//	                                         after that
//
// cluster is the identity of the virtual host in its RabbitMQ cluster (cluster.Identity), so Curfews beside different clusters
// may share a Redis database. cluster, vhost and queue are
// percent-encoded. The lease of the queue with the empty name is the lease for observing.
//
// # Guarantees
//
// A lease has one holder by Redis's clock. It is advisory: RabbitMQ delivers each message to one consumer at a time,
// whatever the leases say, so a lease that is lost by a stall, a failover or a flush costs order, never a message. When a
// keeper is killed, another one follows within 5 s: 3 s until its lease ends, and 1 s between tries.
//
// A separate goroutine writes shadows in batches; nothing waits for it. Shadows that cannot be written because Redis is
// away are dropped, and all are written again when Redis is back, or has lost its data. If a deadline is missing, the next
// keeper does not know the age of the message; a deadline too many does no harm.
//
// Rights that the Redis user needs: +get +set +del +eval +evalsha +append +expireat +zadd +zrange +zrem +zremrangebyscore +exists
// +hgetall +hset +hdel +time on
// ~{curfew:keep:*.
package lease
