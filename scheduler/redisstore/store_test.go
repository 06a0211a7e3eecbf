package redisstore

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/integration/testenv"
)

// openStore returns a store that has begun.
func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	s := openOnly(t, o)
	require.NoError(t, s.Begin(context.Background()))
	return s
}

// openOnly opens a store that waits for a busy machine, unless its URL says otherwise.
func openOnly(t testing.TB, o Options) *Store {
	t.Helper()
	if !strings.Contains(o.URL, "?") {
		o.URL += "?dial_timeout=1m&read_timeout=1m&write_timeout=1m"
	}
	s, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

const startAt = 1_795_217_348_123_456

// row returns n shadows, every µs one, of a few queues.
func row(n int) []deadline.Ref {
	shadows := make([]deadline.Ref, n)
	for i := range shadows {
		shadows[i] = deadline.Ref{Deadline: startAt + deadline.Instant(i), Queue: uint64(i % 7), Seq: uint64(i)}
	}
	return shadows
}

func TestShapeInRedis(t *testing.T) {
	server := testenv.StartRedis(t)
	s := openStore(t, Options{URL: server.URL, Instance: "shop"})
	shadow := deadline.Ref{Deadline: startAt, Queue: 0xabc, Seq: 1<<56 | 42}
	require.NoError(t, s.Apply(context.Background(), []deadline.Ref{shadow}, nil))
	const member = "1795217348123456|0000000000000abc|00072057594037927978"
	require.Equal(t, []any{member}, server.Do("ZRANGE", "{curfew:shop:0}:due:2", "-inf", "(inf", "BYSCORE"))
	require.EqualValues(t, startAt, server.Do("ZSCORE", "{curfew:shop:0}:due:2", member))
	_, _, err := s.Claim(context.Background(), startAt, 1, startAt+10_000, nil)
	require.NoError(t, err)
	require.EqualValues(t, startAt+10_000, server.Do("ZSCORE", "{curfew:shop:0}:due:2", member))
	require.Contains(t, server.Do("GET", "{curfew:shop:0}:owner"), "pid ")
}

func TestHundredThousand(t *testing.T) {
	s := openStore(t, Options{URL: testenv.StartRedis(t).URL})
	ctx, all := context.Background(), row(100_000)
	require.NoError(t, s.Apply(ctx, all, nil))
	n, err := s.Len(ctx)
	require.NoError(t, err)
	require.EqualValues(t, len(all), n)
	scanned := map[deadline.Ref]bool{}
	require.NoError(t, s.Scan(ctx, func(page []deadline.Ref) error {
		for _, shadow := range page {
			scanned[shadow] = true
		}
		clear(page)
		return nil
	}))
	require.Len(t, scanned, len(all))
	var claimed []deadline.Ref
	for next := deadline.Instant(1); next <= startAt+1e6; {
		before := len(claimed)
		claimed, next, err = s.Claim(ctx, startAt+1e6, 5000, startAt+1e7, claimed)
		require.NoError(t, err)
		require.NoError(t, s.Settle(ctx, claimed[before:], nil))
		if next == 0 {
			break
		}
	}
	require.Len(t, claimed, len(all))
	n, err = s.Len(ctx)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestScanEndsWithTheCallersError(t *testing.T) {
	s := openStore(t, Options{URL: testenv.StartRedis(t).URL})
	require.NoError(t, s.Apply(context.Background(), row(100), nil))
	require.ErrorIs(t, s.Scan(context.Background(), func([]deadline.Ref) error { return net.ErrClosed }), net.ErrClosed)
}
