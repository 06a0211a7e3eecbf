package redisstore

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"curfew/broker/deadline"
)

// Options of a Store. URL is required.
type Options struct {
	// URL says where Redis is:
	//
	//	redis://user:password@host:6379/0     one server (rediss:// over TLS)
	//	unix:///run/redis.sock?db=0           one server, local
	//	redis-cluster://host1:6379,host2:6379 Redis Cluster (rediss-cluster://)
	//	redis-sentinel://host1:26379,host2:26379?master_name=main
	//	                                      Sentinel (rediss-sentinel://); user and
	//	                                      password are the sentinels', those of
	//	                                      Redis go in ?username= and ?password=
	//	host1:6379,host2:6379                 Redis Cluster
	//
	// Further parameters are go-redis's (read_timeout=2s, pool_size=8).
	URL string
	// Instance names the schedule, so that several Curfews may share one Redis; ""
	// is "default".
	Instance string
	// Now is the clock that the server's is compared with; nil is the
	// clock of this machine.
	Now func() deadline.Instant
}

// Open makes a Store. It does not connect, so Redis may be away; the error says
// what is wrong with the options and never repeats a password.
func Open(o Options) (*Store, error) {
	client, err := NewClient(o.URL)
	if err != nil {
		return nil, fmt.Errorf("redisstore: REDIS_URL: %w", err)
	}
	o.Instance = cmp.Or(o.Instance, "default")
	if strings.ContainsAny(o.Instance, "{}") {
		return nil, fmt.Errorf("redisstore: instance %q: braces have a meaning of their own in Redis keys", o.Instance)
	}
	if o.Now == nil {
		o.Now = func() deadline.Instant { return deadline.At(time.Now()) }
	}
	return newStore(client, o), nil
}

func newStore(client redis.UniversalClient, o Options) *Store {
	prefix := fmt.Sprintf("{curfew:%s:0}:", o.Instance)
	return &Store{client: client, instance: o.Instance, now: o.Now, due: prefix + "due:2", ownerKey: prefix + "owner", owner: ownerName()}
}

// ownerName is unique to this Store and tells an operator where it runs.
func ownerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("pid %d on %s, %s", os.Getpid(), host, rand.Text())
}
