package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/scheduler"
	"curfew/scheduler/storetest"
)

// watched are two instances, of which first looks at second, which has shadows due,
// three an hour ago and one an hour ahead, in named queues.
func watched(t *testing.T, o Options) (first, second *Store, peer scheduler.Peer) {
	t.Helper()
	ctx := context.Background()
	o.Instance = "first"
	first = openStore(t, o)
	o.Instance, o.Shards = "second", 3
	second = openStore(t, o)
	now := deadline.At(time.Now())
	shadow := func(at deadline.Instant, queue, seq uint64) deadline.Ref {
		return deadline.Ref{Deadline: at, Queue: queue, Seq: seq}
	}
	const hour = deadline.Instant(time.Hour / time.Microsecond)
	require.NoError(t, second.Apply(ctx, []deadline.Ref{
		shadow(now-hour, 1, 1), shadow(now-hour+1, 2, 1), shadow(now-hour+2, 2, 2), shadow(now+hour, 1, 2),
	}, nil))
	require.NoError(t, second.NameQueues(ctx, []scheduler.QueueName{{Queue: 1, VHost: "/", Name: "orders"}, {Queue: 2, VHost: "shop", Name: "mails"}}))
	require.NoError(t, first.Beat(ctx))
	require.NoError(t, second.Beat(ctx))
	return first, second, onlyPeer(t, first)
}

func onlyPeer(t *testing.T, s *Store) scheduler.Peer {
	t.Helper()
	peers, err := s.Peers(context.Background())
	require.NoError(t, err)
	require.Len(t, peers, 1)
	return peers[0]
}

func TestPeerIsWatched(t *testing.T) {
	server := storetest.StartRedis(t)
	cluster := strings.Replace(limit(startCluster(t), aclRule+aclCluster), "redis", "redis-cluster", 1)
	for name, o := range map[string]Options{
		"least rights": {URL: limit(server, aclRule)},
		"a cluster":    {URL: cluster},
		"a clock an hour behind": {
			URL: storetest.StartRedis(t).URL,
			Now: func() deadline.Instant { return deadline.At(time.Now().Add(-time.Hour)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			first, second, peer := watched(t, o)
			require.Equal(t, "second", peer.Name)
			require.Equal(t, 3, peer.Shards)
			require.Equal(t, second.owner, peer.Owner)
			require.InDelta(t, time.Now().UnixMilli(), peer.BeatAt, 60_000)

			overdue, err := first.CountOverdue(ctx, peer)
			require.NoError(t, err)
			require.EqualValues(t, 4, overdue.Stored)
			require.EqualValues(t, 3, overdue.Due)
			require.Equal(t, []scheduler.QueueCount{{QueueName: scheduler.QueueName{Queue: 2, VHost: "shop", Name: "mails"}, Count: 2}, {QueueName: scheduler.QueueName{Queue: 1, VHost: "/", Name: "orders"}, Count: 1}}, overdue.Queues)
			require.InDelta(t, time.Hour.Milliseconds(), overdue.LateMillis, 60_000)
			require.InDelta(t, time.Now().Add(-time.Hour).UnixMilli(), overdue.OldestAt, 60_000)
			n, err := second.Len(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 4, n, "looking changes nothing")
		})
	}
}

func TestHeartbeatChanges(t *testing.T) {
	first, second, before := watched(t, Options{URL: storetest.StartRedis(t).URL})
	require.Equal(t, before, onlyPeer(t, first), "silent")
	require.Eventually(t, func() bool {
		require.NoError(t, second.Beat(context.Background()))
		return onlyPeer(t, first) != before
	}, time.Minute, time.Millisecond)
}

func TestGracefulStopLeavesTheRegistry(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	first, second, _ := watched(t, Options{URL: server.URL})
	again := openOnly(t, Options{URL: server.URL, Instance: "second"})
	require.NoError(t, again.Beat(ctx))
	require.NoError(t, second.Close())
	require.Equal(t, again.owner, onlyPeer(t, first).Owner, "another process of that name goes on")
	require.NoError(t, again.Close())
	peers, err := first.Peers(ctx)
	require.NoError(t, err)
	require.Empty(t, peers)
}

func TestForgetLeavesWhoCameBack(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	first, second, peer := watched(t, Options{URL: server.URL})
	require.Eventually(t, func() bool {
		require.NoError(t, second.Beat(ctx))
		return onlyPeer(t, first) != peer
	}, time.Minute, time.Millisecond)
	require.NoError(t, first.Forget(ctx, peer))
	require.NoError(t, first.Forget(ctx, onlyPeer(t, first)))
	peers, err := first.Peers(ctx)
	require.NoError(t, err)
	require.Empty(t, peers)
}

func TestOneWatches(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	first, _, peer := watched(t, Options{URL: server.URL})
	third := openOnly(t, Options{URL: server.URL, Instance: "third"})
	requireWatch := func(s *Store, want bool) {
		t.Helper()
		mine, err := s.Watch(ctx, peer)
		require.NoError(t, err)
		require.Equal(t, want, mine)
	}
	requireWatch(first, true)
	requireWatch(third, false)
	requireWatch(first, true)
	server.Do("PEXPIRE", "{curfew:second:0}:watcher", 0)
	requireWatch(third, true)
	requireWatch(first, false)
}

// What others wrote into the registry is not a peer. It stays, since it may be a later version's.
func TestGarbageInTheRegistry(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	first, _, peer := watched(t, Options{URL: server.URL})
	good := peerText(peer)
	for name, text := range map[string]string{
		"a": "", "b": "x", "c": "1|4|short stamp", "d": "1795217348123|0|x", "e": "1795217348123|1025|x", "f": "1795217348123|-1|x",
		"g": "1795217348123|4", "h": "1795217348123|4|" + strings.Repeat("x", maxEntry), "i": "1795217348123|4|\xff", "j": "179521734812x|4|x",
		"": good, "{k}": good, "\xff": good, strings.Repeat("n", 256): good,
	} {
		server.Do("HSET", registryKey, name, text)
	}
	require.Equal(t, peer, onlyPeer(t, first))
	require.EqualValues(t, 16, server.Do("HLEN", registryKey))

	for i := range maxPeers {
		server.Do("HSET", registryKey, fmt.Sprint("crowd", i), good)
	}
	_, err := first.Peers(ctx)
	require.ErrorContains(t, err, "delete it")
	require.NoError(t, first.Beat(ctx), "it lives all the same")
	server.Do("DEL", registryKey)
	server.Do("SET", registryKey, "x")
	for _, err := range []error{first.Beat(ctx), second(first.Peers(ctx)), first.Forget(ctx, peer)} {
		require.ErrorContains(t, err, "is not a hash: delete it")
	}
}

func second[T any](_ T, err error) error { return err }

func TestWatchingWithFullRedis(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	first, _, peer := watched(t, Options{URL: server.URL})
	server.Do("CONFIG", "SET", "maxmemory", "1")
	require.NoError(t, first.Beat(ctx))
	mine, err := first.Watch(ctx, peer)
	require.NoError(t, err)
	require.True(t, mine)
	overdue, err := first.CountOverdue(ctx, peer)
	require.NoError(t, err)
	require.EqualValues(t, 3, overdue.Due)
}

func TestWatchingWithoutRights(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	before, _, _ := strings.Cut(aclRule, "+hset")
	s := openStore(t, Options{URL: limit(server, before)})
	for _, err := range []error{s.Beat(ctx), second(s.Peers(ctx)), s.NameQueues(ctx, []scheduler.QueueName{{Queue: 1}})} {
		require.ErrorContains(t, err, "lacks a right")
	}
	requireEpoch(t, s, true)
}

func TestWatchingWithoutRedis(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	first, _, peer := watched(t, Options{URL: server.URL})
	server.Kill()
	for _, err := range []error{
		first.Beat(ctx), second(first.Peers(ctx)), second(first.Watch(ctx, peer)), second(first.CountOverdue(ctx, peer)), first.Forget(ctx, peer),
		first.NameQueues(ctx, []scheduler.QueueName{{Queue: 1}}), second(first.PruneQueues(ctx, func(uint64) bool { return true })),
	} {
		require.Error(t, err)
		_, reply := errors.AsType[redis.Error](err)
		require.False(t, reply)
	}
}

// A million due are counted in full, and the queues of the first thousand told apart.
func TestMissedIsBounded(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	first, second, peer := watched(t, Options{URL: server.URL})
	var many []deadline.Ref
	for seq := range uint64(20_000) {
		many = append(many, deadline.Ref{Deadline: 1_000_000_000_000_000 + deadline.Instant(seq), Queue: 100 + seq%50, Seq: seq})
	}
	require.NoError(t, second.Apply(ctx, many, nil))
	server.Do("ZADD", second.due[0], 1, "not a shadow", 2, strings.Repeat("x", scheduler.TextLen))
	overdue, err := first.CountOverdue(ctx, peer)
	require.NoError(t, err)
	require.EqualValues(t, len(many)+3+2, overdue.Due)
	require.EqualValues(t, 1_000_000_000_000, overdue.OldestAt)
	require.Len(t, overdue.Queues, topQueues)
	for _, q := range overdue.Queues {
		require.Empty(t, q.Name)
		require.LessOrEqual(t, q.Count, int64(sampleLen))
	}
}

func TestNamesArePruned(t *testing.T) {
	ctx, server := context.Background(), storetest.StartRedis(t)
	s := openStore(t, Options{URL: server.URL})
	var queues []scheduler.QueueName
	for queue := range uint64(2000) {
		queues = append(queues, scheduler.QueueName{Queue: queue, VHost: "/", Name: fmt.Sprint("q", queue)})
	}
	require.NoError(t, s.NameQueues(ctx, queues))
	require.NoError(t, s.NameQueues(ctx, nil))
	server.Do("HSET", s.queuesKey, "not a queue", "x")
	kept, err := s.PruneQueues(ctx, func(queue uint64) bool { return queue < 3 })
	require.NoError(t, err)
	require.ElementsMatch(t, []uint64{0, 1, 2}, kept)
	require.EqualValues(t, 3, server.Do("HLEN", s.queuesKey))
	require.Equal(t, "/\x00q2", server.Do("HGET", s.queuesKey, "0000000000000002"))
}
