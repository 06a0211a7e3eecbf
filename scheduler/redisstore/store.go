package redisstore

import (
	"context"
	"sync"
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
	due      string // key of the sorted set
	ownerKey string
	owner    string // names this Store in ownerKey

	mu    sync.Mutex
	epoch string // member that marks the sorted set as begun by us; "" before Begin
	run   string // server process on which it was begun
}

var _ scheduler.Store = (*Store)(nil)

// Len implements scheduler.Store.
func (s *Store) Len(ctx context.Context) (int64, error) {
	n, err := s.client.ZCount(ctx, s.due, "-inf", "(inf").Result()
	return n, explain("count", s.due, err)
}

// discard removes members that are not shadows, as far as Redis lets it. Those that stay come up
// again.
func (s *Store) discard(ctx context.Context, aliens []any) {
	if len(aliens) > 0 {
		_ = s.client.ZRem(ctx, s.due, aliens...).Err()
	}
}

// Close gives the ownership back, if Redis is there, and closes the connections.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = releaseScript.Run(ctx, s.client, []string{s.ownerKey}, s.owner).Err()
	return s.client.Close()
}
