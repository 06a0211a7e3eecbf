package redisstore

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/integration/testenv"
	"curfew/scheduler"
)

func TestScriptFlush(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	s := openStore(t, Options{URL: server.URL})
	require.NoError(t, s.Apply(ctx, row(100), nil))
	for range 2 {
		server.Do("SCRIPT", "FLUSH")
		requireEpoch(t, s, true)
		server.Do("SCRIPT", "FLUSH")
		claimed, _, err := s.Claim(ctx, startAt+1e6, 50, startAt+2e6, nil)
		require.NoError(t, err)
		require.Len(t, claimed, 50)
	}
}

func TestAwayAndBack(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	s := openStore(t, Options{URL: server.URL})
	server.Kill()
	require.Error(t, s.Apply(ctx, row(1), row(2)))
	require.Error(t, s.Settle(ctx, row(1), nil))
	require.Error(t, claimOne(s))
	require.Error(t, s.Begin(ctx))
	require.Error(t, s.Scan(ctx, func([]deadline.Ref) error { return nil }))
	_, err := s.Len(ctx)
	require.Error(t, err)
	_, err = s.Epoch(ctx)
	require.Error(t, err)
	_, err = s.Check(ctx)
	require.Error(t, err)

	server.Restart()
	begin(t, s)
	require.NoError(t, s.Apply(ctx, row(10), nil))
	claimed, _, err := s.Claim(ctx, startAt+100, 100, startAt+200, nil)
	require.NoError(t, err)
	require.Len(t, claimed, 10)
}

func TestAwayFromTheStart(t *testing.T) {
	server := testenv.StartRedis(t)
	server.Kill()
	s := openOnly(t, Options{URL: server.URL})
	require.Error(t, s.Begin(context.Background()))
	server.Restart()
	begin(t, s)
}

// begin waits for a server that came back: go-redis repeats the error of the last
// dial for up to a second.
func begin(t *testing.T, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		if s.Begin(context.Background()) != nil {
			return false
		}
		ok, err := s.Epoch(context.Background())
		return ok && err == nil
	}, time.Minute, 20*time.Millisecond)
}

// A server that does not answer holds a call no longer than its timeouts, or than
// the caller's context says.
func TestSilentServer(t *testing.T) {
	server := testenv.StartRedis(t)
	s := openOnly(t, Options{URL: server.URL + "?read_timeout=30ms&max_retries=1"})
	begin(t, s) // a busy machine takes longer than 30 ms now and then
	patient := openOnly(t, Options{URL: server.URL + "?read_timeout=1h"})
	require.NoError(t, claimOne(patient))
	server.Pause()
	require.Error(t, claimOne(s))
	require.Error(t, s.Apply(context.Background(), row(1), nil))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	require.Error(t, patient.Apply(ctx, row(1), nil))
	server.Resume()
	require.Eventually(t, func() bool { ok, err := s.Epoch(context.Background()); return ok && err == nil }, time.Minute, time.Millisecond)
}

func TestWrongType(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	s := openOnly(t, Options{URL: server.URL})
	server.Do("SET", s.due, "x")
	_, lenErr := s.Len(ctx)
	for _, err := range []error{
		s.Begin(ctx), s.Apply(ctx, row(1), nil), s.Apply(ctx, nil, row(1)), claimOne(s), lenErr,
		s.Scan(ctx, func([]deadline.Ref) error { return nil }),
	} {
		require.ErrorContains(t, err, "{curfew:default:0}:due:2 is not a sorted set")
		require.ErrorContains(t, err, "CURFEW_INSTANCE")
	}
	server.Do("DEL", s.due, s.ownerKey)
	server.Do("LPUSH", s.ownerKey, "x")
	require.ErrorContains(t, s.Begin(ctx), "{curfew:default:0}:owner is not a string")
}

func TestFull(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t, "--maxmemory-policy", "noeviction")
	s := openStore(t, Options{URL: server.URL})
	all := row(2000)
	require.NoError(t, s.Apply(ctx, all, nil))
	server.Do("CONFIG", "SET", "maxmemory", 1)
	require.ErrorContains(t, s.Apply(ctx, row(2500)[2000:], all[:500]), "maxmemory")
	n, err := s.Len(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1500, n, "it removes nevertheless")
	claimed, _, err := s.Claim(ctx, startAt+1e6, 100, startAt+2e6, nil)
	require.NoError(t, err)
	require.Len(t, claimed, 100, "and claims")
	require.NoError(t, s.Settle(ctx, claimed, nil), "and settles")
	requireEpoch(t, s, true)
	require.NoError(t, s.Begin(ctx))
	server.Do("CONFIG", "SET", "maxmemory", 0)
	require.NoError(t, s.Apply(ctx, row(2500), nil))
}

func TestRightsRevoked(t *testing.T) {
	server := testenv.StartRedis(t)
	s := openStore(t, Options{URL: server.Limited("resetkeys ~{curfew:* +@all")})
	server.Do("ACL", "SETUSER", "curfew", "-zadd")
	require.ErrorContains(t, s.Apply(context.Background(), row(1), nil), "lacks a right")
	server.Do("ACL", "SETUSER", "curfew", "-evalsha", "-eval")
	require.ErrorContains(t, claimOne(s), "lacks a right")
}

// Members that are not shadows neither fire nor stay, wherever they stand.
func TestAliens(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	s := openStore(t, Options{URL: server.URL})
	aliens := []string{
		"", "x", strings.Repeat("x", scheduler.TextLen), strings.Repeat("0", scheduler.TextLen), "a\nb",
	}
	plant := func(score any) {
		for _, member := range aliens {
			server.Do("ZADD", s.due, score, member)
		}
	}
	requireRow := func() {
		t.Helper()
		for _, member := range server.Do("ZRANGE", s.due, "-inf", "(inf", "BYSCORE").([]any) {
			_, err := scheduler.ParseText(member.(string))
			require.NoError(t, err)
		}
		n, err := s.Len(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 100, n)
	}
	require.NoError(t, s.Apply(ctx, row(100), nil))
	plant(startAt - 10)
	claimed, _, err := s.Claim(ctx, startAt+1e6, 1000, startAt+2e6, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, row(100), claimed)
	requireRow()
	plant(startAt + 1e9)
	n := 0
	require.NoError(t, s.Scan(ctx, func(page []deadline.Ref) error { n += len(page); return nil }))
	require.Equal(t, 100, n)
	requireRow()
	requireEpoch(t, s, true)
}

func TestScoresOfOthersDoNotStopAClaim(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	s := openStore(t, Options{URL: server.URL})
	require.NoError(t, s.Apply(ctx, row(3), nil))
	for i, score := range []string{"-5", "1e300", "1795217348123456.5"} {
		server.Do("ZADD", s.due, score, textOf(row(3)[i]))
	}
	claimed, next, err := s.Claim(ctx, startAt, 10, startAt+10, nil)
	require.NoError(t, err)
	require.Equal(t, row(1), claimed)
	require.EqualValues(t, startAt+1, next, "a fraction is rounded up")
	claimed, next, err = s.Claim(ctx, startAt+1, 10, startAt+20, nil)
	require.NoError(t, err)
	require.Equal(t, row(3)[2:], claimed)
	require.EqualValues(t, startAt+10, next)
	server.Do("ZREM", s.due, textOf(row(3)[0]), textOf(row(3)[2]))
	_, next, err = s.Claim(ctx, startAt+2, 10, startAt+30, nil)
	require.NoError(t, err)
	require.EqualValues(t, scheduler.MaxDeadline, next)
}

func TestCheck(t *testing.T) {
	ctx, server := context.Background(), testenv.StartRedis(t)
	s := openOnly(t, Options{URL: server.URL, Now: func() deadline.Instant { return deadline.At(time.Now().Add(-time.Minute)) }})
	status, err := s.Check(ctx)
	require.NoError(t, err)
	require.InDelta(t, 60_000, status.SkewMillis, 30_000)
	require.Empty(t, status.Warnings)

	server.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	status, err = s.Check(ctx)
	require.NoError(t, err)
	require.Len(t, status.Warnings, 1)
	require.Contains(t, status.Warnings[0], "noeviction")

	server.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(server.Port()))
	status, err = s.Check(ctx)
	require.NoError(t, err)
	require.Len(t, status.Warnings, 2)
	require.Contains(t, status.Warnings[0], "replica")
	require.Error(t, s.Apply(ctx, row(1), nil))
}

func TestCheckOfACluster(t *testing.T) {
	s := openOnly(t, Options{URL: "redis-cluster://" + testenv.StartRedisCluster(t).Addr})
	status, err := s.Check(context.Background())
	require.NoError(t, err)
	require.Empty(t, status.Warnings)
}

func TestWorstOfACluster(t *testing.T) {
	good := scheduler.Status{SkewMillis: -9}
	bad := scheduler.Status{SkewMillis: 5, Warnings: []string{"a", "b"}}
	other := scheduler.Status{Warnings: []string{"b", "c"}}
	for _, all := range [][]scheduler.Status{{good, bad, other}, {bad, other, good}, {bad, good, other}} {
		status := worse(worse(all[0], all[1]), all[2])
		require.EqualValues(t, -9, status.SkewMillis)
		require.ElementsMatch(t, []string{"a", "b", "c"}, status.Warnings)
	}
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"5.0.14": true, "6.0.16": true, "6.2.0": false, "7.0.15": false, "10.1.0": false, "": false, "unstable": false,
	} {
		require.Equal(t, want, tooOld(version), version)
	}
}

// textOf is a shadow as it is in Redis.
func textOf(shadow deadline.Ref) string {
	text, err := scheduler.AppendText(nil, shadow)
	if err != nil {
		panic(err)
	}
	return string(text)
}
