package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

func TestURLs(t *testing.T) {
	client := func(text string) redis.UniversalClient {
		t.Helper()
		c, err := NewClient(text)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	o := client("rediss://u:p%23w@host:7000/3?read_timeout=7s").(*redis.Client).Options()
	require.Equal(t, "host:7000", o.Addr)
	require.Equal(t, []any{"u", "p#w", 3}, []any{o.Username, o.Password, o.DB})
	require.NotNil(t, o.TLSConfig)
	require.Equal(t, 7*time.Second, o.ReadTimeout)
	require.Equal(t, time.Second, o.WriteTimeout)
	require.Equal(t, 2*time.Second, o.DialTimeout)
	require.Equal(t, []any{2, 1, 8, true}, []any{o.MaxRetries, o.DialerRetries, o.PoolSize, o.ContextTimeoutEnabled})
	require.Equal(t, maintnotifications.ModeDisabled, o.MaintNotificationsConfig.Mode)

	require.Equal(t, "host:6379", client("host").(*redis.Client).Options().Addr)
	o = client("unix://u:p@/run/redis.sock?db=2").(*redis.Client).Options()
	require.Equal(t, []any{"unix", "/run/redis.sock", "u", 2}, []any{o.Network, o.Addr, o.Username, o.DB})

	for _, text := range []string{"a:1,b:2,c", "redis://a:1,b:2,c", "redis-cluster://a:1,b:2,c"} {
		require.ElementsMatch(t, []string{"a:1", "b:2", "c:6379"}, client(text).(*redis.ClusterClient).Options().Addrs, text)
	}
	cluster := client("rediss-cluster://u:p@a:1").(*redis.ClusterClient).Options()
	require.Equal(t, []any{"u", "p", time.Second, 1}, []any{cluster.Username, cluster.Password, cluster.ReadTimeout, cluster.DialerRetries})
	require.NotNil(t, cluster.TLSConfig)

	require.ElementsMatch(t, []string{"[::1]:6379", "[::2]:7"}, client("redis://[::1],[::2]:7").(*redis.ClusterClient).Options().Addrs)

	o = client("redis-sentinel://a:1,b:2/4?master_name=main&password=pw").(*redis.Client).Options()
	require.Equal(t, []any{"pw", 4, time.Second, 2}, []any{o.Password, o.DB, o.ReadTimeout, o.MaxRetries})
}

func TestBadURLs(t *testing.T) {
	for _, text := range []string{
		"", "http://host", "redis-cluster-x://host", "redis://host:port", "redis://u:secret#x@host", "redis://u:secret@host/x",
		"redis://u:secret/x@host", "redis://host?unknown=1", "redis-sentinel://host", "redis://host?%zz=secret", "redis://u:1/secret@host",
		"redis://u:p?secret@host", "redis://u:1?max_retries=secret@host", "unix://u:p/secret@/run/x?y=z", "redis://a,b:secret:1",
	} {
		_, err := Open(Options{URL: text})
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := Open(Options{URL: "redis://host?unknown=1"})
	require.ErrorContains(t, err, "unknown", "what cannot be a secret is said")
	_, err = Open(Options{URL: "redis://host", Instance: "a}b"})
	require.Error(t, err)
}
