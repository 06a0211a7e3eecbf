package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"curfew/monitor/rabbitmq/keeper"
)

// Space is where queues are: a virtual host of a RabbitMQ cluster, by its identity there (cluster.Identity). Each Space has its own
// keys in Redis.
type Space struct{ Cluster, VHost string }

// prefix begins the keys of a queue; with "", those for observing.
func (s Space) prefix(queue string) string {
	return fmt.Sprintf("{curfew:keep:%s:%s:%s}", url.QueryEscape(s.Cluster), url.QueryEscape(s.VHost), url.QueryEscape(queue))
}

// length is how long a lease is valid unless it is renewed.
const length = 3 * time.Second

// Lease is the lease of one queue, as one Curfew sees it. It is safe for concurrent use.
type Lease struct {
	client redis.UniversalClient
	key    string
	name   string
	token  string
}

var _ keeper.Lease = (*Lease)(nil)

// New makes the lease of a queue. name is the name of this Curfew, for people; several may have the same. It does not connect.
func New(client redis.UniversalClient, at Space, queue, name string) *Lease {
	return &Lease{client: client, key: at.prefix(queue) + ":lease", name: name, token: name + " " + rand.Text()}
}

// acquire takes the lease if nobody has it, and renews it if it is ours.
// KEYS[1] lease; ARGV[1] token, ARGV[2] length in ms. Returns the holder's token.
var acquire = redis.NewScript(`
local holder = redis.call('GET', KEYS[1])
if not holder or holder == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
	return ARGV[1]
end
return holder`)

// release gives the lease back if it is ours.
// KEYS[1] lease; ARGV[1] token. Returns the number of keys deleted.
var release = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then
	return redis.call('DEL', KEYS[1])
end
return 0`)

// Acquire implements keeper.Lease.
func (l *Lease) Acquire(ctx context.Context) (holder string, held bool, err error) {
	token, err := acquire.Run(ctx, l.client, []string{l.key}, l.token, length.Milliseconds()).Text()
	if err != nil {
		return "", false, fmt.Errorf("lease: acquire: %w", err)
	}
	return nameOf(token), token == l.token, nil
}

// Holder returns who has the lease; "" is nobody.
func (l *Lease) Holder(ctx context.Context) (string, error) {
	token, err := l.client.Get(ctx, l.key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("lease: read holder: %w", err)
	}
	return nameOf(token), nil
}

// Release implements keeper.Lease.
func (l *Lease) Release(ctx context.Context) error {
	if err := release.Run(ctx, l.client, []string{l.key}, l.token).Err(); err != nil {
		return fmt.Errorf("lease: release: %w", err)
	}
	return nil
}
