package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// Store is a schedule in Redis. Create it with Open. All methods are safe for
// concurrent use.
type Store struct {
	client   redis.UniversalClient
	instance string
	now      func() deadline.Instant
	due      []string // key of each shard's sorted set
	ownerKey string
	owner    string // names this Store in ownerKey
	turn     atomic.Uint32

	mu    sync.Mutex
	epoch string   // member that marks the shards as begun by us; "" before Begin
	runs  []string // server process each shard was begun on
}

var _ scheduler.Store = (*Store)(nil)

// shardOf keeps a queue's shadows together and spreads queues. It must never
// change: shadows are searched for only in the shard that it returns.
func (s *Store) shardOf(queue uint64) int {
	queue ^= queue >> 33
	queue *= 0xff51afd7ed558ccd
	queue ^= queue >> 33
	return int(queue % uint64(len(s.due)))
}

// Len implements scheduler.Store.
func (s *Store) Len(ctx context.Context) (int64, error) {
	pipe := s.client.Pipeline()
	for _, key := range s.due {
		pipe.ZCount(ctx, key, "-inf", "(inf")
	}
	counts, err := pipe.Exec(ctx)
	if err := s.firstError("count", counts, err); err != nil {
		return 0, err
	}
	total := int64(0)
	for _, count := range counts {
		total += count.(*redis.IntCmd).Val()
	}
	return total, nil
}

// firstError is the first of a pipeline's errors, explained, for commands sent to
// the shards in order; err is what the pipeline itself returned.
func (s *Store) firstError(operation string, sent []redis.Cmder, err error) error {
	if err == nil {
		return nil
	}
	for shard, cmd := range sent {
		if cmd.Err() != nil {
			return explain(operation, s.due[shard], cmd.Err())
		}
	}
	return explain(operation, "", err)
}

// Close gives the ownership back, if Redis is there, and closes the connections.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = releaseScript.Run(ctx, s.client, []string{s.ownerKey}, s.owner).Err()
	return s.client.Close()
}
