package scheduler_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
	"curfew/scheduler"
	"curfew/scheduler/redisstore"
)

// rights are those that package redisstore says it needs.
const rights = "resetkeys ~{curfew:* -@all +hello +auth +ping +select +info +time " +
	"+zadd +zrem +zrange +zcount +zscore +zscan +get +set +pexpire +eval +evalsha"

func TestMemory(t *testing.T) {
	suite(t, func(*testing.T) scheduler.Store { return scheduler.NewIndex(nil) })
}

func TestRedis(t *testing.T) {
	server, socket := testenv.StartRedis(t), t.TempDir()+"/redis.sock"
	testenv.StartRedis(t, "--unixsocket", socket)
	cluster := testenv.StartRedisCluster(t).Limited(rights + " +cluster|slots +cluster|shards +command")
	for name, o := range map[string]redisstore.Options{
		"one server":    {URL: server.URL},
		"least rights":  {URL: server.Limited(rights)},
		"a cluster":     {URL: strings.Replace(cluster, "redis", "redis-cluster", 1)},
		"by its socket": {URL: "unix://" + socket},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			suite(t, func(t *testing.T) scheduler.Store {
				n++
				o := o
				o.Instance = name + strconv.Itoa(n)
				s, err := redisstore.Open(o)
				require.NoError(t, err)
				t.Cleanup(func() { _ = s.Close() })
				require.NoError(t, s.Begin(t.Context()))
				return s
			})
		})
	}
}
