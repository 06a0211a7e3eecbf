package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"curfew/scheduler"
)

// ErrOwned is wrapped by Begin's and Epoch's refusal when another process owns the
// instance's schedule.
var ErrOwned = errors.New("schedule owned by another Curfew")

// OwnerLease is how long an owner that stopped calling Epoch or Refresh keeps
// others out; RefreshEvery is how often to call one of them.
const (
	OwnerLease   = 10 * time.Second
	RefreshEvery = 3 * time.Second
)

// Options of a Store. URL is required.
type Options struct {
	// URL says where Redis is: redis://, rediss://, unix://, redis-sentinel://,
	// redis-cluster:// (rediss-... for TLS), or a comma list.
	URL string
	// Instance names the schedule; "" is "default".
	Instance string
	// Shards is the number of sorted sets; 0 is 4.
	Shards int
	// Now is the clock the skew is measured against, Unix ms; nil is the wall clock.
	Now func() int64
}

// Store is a schedule in Redis. Create it with Open.
type Store struct{ client redis.UniversalClient }

var _ scheduler.Store = (*Store)(nil)

// Status is what Check found.
type Status struct {
	// Version is that of the server, "7.0.15".
	Version string `json:"version"`
	// Role is "master", or "slave" by mistake.
	Role string `json:"role"`
	// MaxmemoryPolicy is anything else than "noeviction" by mistake.
	MaxmemoryPolicy string `json:"maxmemory_policy"`
	// Persistence is "aof", "rdb", "none", or "unknown".
	Persistence string `json:"persistence"`
	// SkewMillis is the server's clock less ours.
	SkewMillis int64 `json:"skew_ms"`
	// Warnings say, for an operator, what endangers the schedule.
	Warnings []string `json:"warnings,omitempty"`
}

// Open reads the options. It does not connect: Redis may be away.
func Open(o Options) (*Store, error) { return nil, errors.New("redisstore: not yet") }

// Apply implements scheduler.Store.
func (s *Store) Apply(ctx context.Context, add, remove []scheduler.Shadow) error { return nil }

// Claim implements scheduler.Store.
func (s *Store) Claim(ctx context.Context, until int64, max int, leaseUntil int64, out []scheduler.Shadow) (claimed []scheduler.Shadow, next int64, err error) {
	return out, 0, nil
}

// Settle implements scheduler.Store.
func (s *Store) Settle(ctx context.Context, done []scheduler.Shadow, later []scheduler.Later) error {
	return nil
}

// Len implements scheduler.Store.
func (s *Store) Len(ctx context.Context) (int64, error) { return 0, nil }

// Begin takes the schedule into possession: it writes this process's epoch to each
// shard. The error wraps ErrOwned when another process owns it.
func (s *Store) Begin(ctx context.Context) error { return nil }

// Epoch says whether every shard is still the one Begin found, and renews the
// ownership like Refresh.
func (s *Store) Epoch(ctx context.Context) (ok bool, err error) { return true, nil }

// Refresh renews the ownership.
func (s *Store) Refresh(ctx context.Context) error { return nil }

// Scan names every stored shadow, each at least once, in pages that fn may change
// but not keep.
func (s *Store) Scan(ctx context.Context, fn func(page []scheduler.Shadow) error) error { return nil }

// Check looks at the server and its settings.
func (s *Store) Check(ctx context.Context) (Status, error) { return Status{}, nil }

// Close gives the ownership back and closes the connections.
func (s *Store) Close() error { return nil }
