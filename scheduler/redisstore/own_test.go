package redisstore

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/integration/testenv"
)

func TestSecondOwnerIsRefused(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	first := openStore(t, Options{URL: server.URL})
	second := openOnly(t, Options{URL: server.URL})
	err := second.Begin(ctx)
	require.ErrorIs(t, err, ErrOwned)
	require.ErrorContains(t, err, "CURFEW_INSTANCE")
	require.ErrorContains(t, err, first.owner)
	requireEpoch(t, first, true)
	openStore(t, Options{URL: server.URL, Instance: "another"})

	require.NoError(t, first.Close())
	require.NoError(t, second.Begin(ctx), "given back")
	requireEpoch(t, second, true)
}

func TestOwnerThatSleptIsSucceeded(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	first := openStore(t, Options{URL: server.URL})
	left := server.Do("PTTL", first.ownerKey).(int64)
	require.Positive(t, left)
	require.LessOrEqual(t, left, OwnerLease.Milliseconds())
	server.Do("PEXPIRE", first.ownerKey, 0) // as when time has gone by
	second := openStore(t, Options{URL: server.URL})
	ok, err := first.Epoch(ctx)
	require.ErrorIs(t, err, ErrOwned)
	require.False(t, ok)
	require.ErrorIs(t, first.Begin(ctx), ErrOwned)
	require.ErrorIs(t, claimOne(first), errEpoch)
	require.NoError(t, first.Close())
	requireEpoch(t, second, true)
}

func TestRefreshRenewsTheOwnership(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	s := openStore(t, Options{URL: server.URL})
	left := func() int64 { return server.Do("PTTL", s.ownerKey).(int64) }
	server.Do("PEXPIRE", s.ownerKey, 5_000)
	require.NoError(t, s.Refresh(ctx))
	require.Greater(t, left(), int64(5_000))
	server.Do("PEXPIRE", s.ownerKey, 5_000)
	requireEpoch(t, s, true)
	require.Greater(t, left(), int64(5_000))
	server.Do("DEL", s.ownerKey)
	require.NoError(t, s.Refresh(ctx))
	require.Greater(t, left(), int64(5_000), "nobody else took it")
}

func claimOne(s *Store) error {
	_, _, err := s.Claim(context.Background(), startAt, 1, startAt+1, nil)
	return err
}

func TestEpochTellsALoss(t *testing.T) {
	for name, lose := range map[string]func(r *testenv.Redis){
		"FLUSHALL":      func(r *testenv.Redis) { r.Do("FLUSHALL") },
		"DEL":           func(r *testenv.Redis) { r.Do("DEL", "{curfew:default:0}:due:2") },
		"RENAME":        func(r *testenv.Redis) { r.Do("RENAME", "{curfew:default:0}:due:2", "old") },
		"empty restart": func(r *testenv.Redis) { r.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, server := context.Background(), testenv.StartRedis(t)
			s := openOnly(t, Options{URL: server.URL})
			requireEpoch(t, s, false)
			require.NoError(t, s.Begin(ctx))
			require.NoError(t, s.Apply(ctx, row(1000), nil))
			requireEpoch(t, s, true)
			lose(server)
			require.ErrorIs(t, claimOne(s), errEpoch)
			require.NoError(t, s.Apply(ctx, row(1000), nil), "writes do not hide it")
			requireEpoch(t, s, false)
			require.ErrorIs(t, claimOne(s), errEpoch)
			require.NoError(t, s.Begin(ctx))
			requireEpoch(t, s, true)
			require.NoError(t, claimOne(s))
		})
	}
}

// A server that comes back with an append-only file may lack its last second.
func TestEpochTellsARestart(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	s := openStore(t, Options{URL: server.URL})
	require.NoError(t, s.Apply(ctx, row(10), nil))
	server.Restart()
	n, err := s.Len(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 10, n)
	requireEpoch(t, s, false)
	require.NoError(t, s.Begin(ctx))
	requireEpoch(t, s, true)
	n, err = s.Len(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 10, n, "Begin keeps what is stored")
}

func TestEpochEndsWhenAnotherBegins(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	first := openStore(t, Options{URL: server.URL})
	second := openOnly(t, Options{URL: server.URL})
	second.owner = first.owner
	require.NoError(t, second.Begin(ctx))
	requireEpoch(t, first, false)
	requireEpoch(t, second, true)
	require.EqualValues(t, 1, server.Do("ZCARD", second.due), "one mark, and no shadow")
}

// Without the right to INFO a restart is not told from the server having gone on, as
// far as nothing was lost.
func TestEpochWithoutInfo(t *testing.T) {
	server := testenv.StartRedis(t)
	s := openOnly(t, Options{URL: server.URL})
	server.Do("ACL", "SETUSER", "default", "-info")
	require.NoError(t, s.Begin(context.Background()))
	requireEpoch(t, s, true)
	server.Do("DEL", s.due)
	requireEpoch(t, s, false)
}

func requireEpoch(t *testing.T, s *Store, want bool) {
	t.Helper()
	ok, err := s.Epoch(context.Background())
	require.NoError(t, err)
	require.Equal(t, want, ok)
}

// Two processes claim from one schedule: each shadow goes to one of them.
func TestTwoClaimers(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	stores := []*Store{openOnly(t, Options{URL: server.URL}), openOnly(t, Options{URL: server.URL})}
	all := row(5000)
	require.NoError(t, stores[0].Apply(ctx, all, nil))
	claimed := make(chan []deadline.Ref, len(stores))
	for _, s := range stores {
		go func() {
			var mine []deadline.Ref
			for before := -1; len(mine) > before; {
				before = len(mine)
				mine, _, _ = s.Claim(ctx, startAt+1e6, 100, startAt+2e6, mine)
			}
			claimed <- mine
		}()
	}
	require.ElementsMatch(t, all, append(<-claimed, <-claimed...))
}

// A replica that did not get the last writes is promoted: the mark is there, but the
// server is another.
func TestEpochTellsAFailover(t *testing.T) {
	ctx := context.Background()
	master, replica := testenv.StartRedis(t), testenv.StartRedis(t)
	var addr atomic.Value
	addr.Store(master.Addr)
	client := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
	}})
	s := newStore(client, Options{Instance: "x", Now: func() deadline.Instant { return startAt }})
	t.Cleanup(func() { _ = s.Close() })
	require.NoError(t, s.Begin(ctx))
	replica.Do("REPLICAOF", "127.0.0.1", master.Port())
	require.Eventually(t, func() bool { return replica.Do("ZCARD", s.due) == int64(1) }, time.Minute, 10*time.Millisecond)
	replica.Do("REPLICAOF", "NO", "ONE")
	require.NoError(t, s.Apply(ctx, row(100), nil))
	requireEpoch(t, s, true)

	addr.Store(replica.Addr)
	master.Kill()
	require.Eventually(t, func() bool { _, err := s.Len(ctx); return err == nil }, time.Minute, 10*time.Millisecond)
	requireEpoch(t, s, false)
	require.NoError(t, s.Begin(ctx))
	requireEpoch(t, s, true)
}
