// Package redisstore keeps a schedule in Redis: one server (6.2 or later, or Valkey),
// Sentinel or Cluster. It outlives the process, and an operator can look at it.
//
// # Keys
//
//	{curfew:<instance>:0}:due:2   sorted set: member = the shadow's text form,
//	                              score = the instant it is due, Unix µs
//	{curfew:<instance>:0}:owner   string: the process that owns the schedule,
//	                              for 10 s at a time
//
// The text form sorts as shadows do, so shadows with equal scores are claimed in order of
// deadline, queue and seq. A script touches one key, so all work in a cluster, where a schedule
// is on one master. One member of the set is never claimed: "epoch|<random>" with an infinite score. ZCARD counts it, Len does not.
//
// # Guarantees
//
// Those of scheduler.Store. Claiming is atomic: one script moves the score
// of what is due to the end of the lease and returns it, so each shadow has one claimer
// until then. After a lost reply, a killed claimer or a retried call, shadows are leased,
// not lost. Redis may lose what it acknowledged (a restart, a failover to a replica that
// lagged, eviction, FLUSHALL). That is noticed, not prevented, and the schedule is
// rebuilt from the queues.
//
// # Ownership and epoch
//
//	            Begin                      another epoch, server or owner
//	not begun ─────────► begun, whole ─────────────────────────► not ours or not whole
//	                        ▲  Epoch, Claim: yes                   Epoch: no  Claim: errEpoch
//	                        └──────────────────── Begin ◄──────────────┘
//
// Begin takes the ownership, which Refresh and Epoch renew, and writes a new epoch. A second process with the same instance name is refused (ErrOwned)
// until the first has given the ownership back by Close, or has been silent for OwnerLease.
// The epoch's mark is in the sorted set itself, so that it is lost with the set, however
// that happens; each claim looks for it. Epoch also compares the server's run id, which
// changes with a restart and a failover even where the mark survived and the last second of
// writes did not.
//
// # Time
//
// Claim's until and lease are the caller's. Scores are deadlines, stamped by the
// primary's clock and judged by it. With the server's TIME there would be a second clock:
// claims would come too soon and be turned away, or too late. So a skewed server does no harm;
// Check measures the skew.
//
// # Cost
//
// A claim takes one round trip, and claims at most 1000 shadows, which holds a server for less
// than 3 ms. A write takes one for each kind of change and 4096 members; a command has at most
// 512 of them. A member takes about 130 bytes of the server's memory.
//
// Rights the Redis user needs, and no more:
//
//	resetkeys ~{curfew:* -@all +hello +auth +ping +select +info +time
//	+zadd +zrem +zrange +zcount +zscore +zscan +get +set +pexpire +eval +evalsha
//
// Without INFO, Check does not work, and a restart after which the marks are still there is
// not noticed. Cluster also needs +cluster|slots +cluster|shards +command.
//
// # Left to others
//
// Package monitor/schedule rebuilds a schedule, decides when to give up and to try again, and
// fires without Redis. Nothing here runs by itself.
package redisstore
