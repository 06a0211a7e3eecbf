package lease

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/keeper"
)

func TestLeaseHasOneHolder(t *testing.T) {
	r := testenv.StartRedis(t)
	a, b := New(r.Client, Space{VHost: "/"}, "q", "left"), New(r.Client, Space{VHost: "/"}, "q", "right")
	elsewhere := New(r.Client, Space{VHost: "/"}, "q2", "right")
	acquire := func(l *Lease) (string, bool) {
		holder, held, err := l.Acquire(t.Context())
		require.NoError(t, err)
		return holder, held
	}
	holder, held := acquire(a)
	require.True(t, held)
	require.Equal(t, "left", holder)
	require.NoError(t, r.Client.Expire(t.Context(), a.key, time.Hour).Err()) // on a busy machine its time may be over
	holder, held = acquire(b)
	require.False(t, held)
	require.Equal(t, "left", holder)
	_, held = acquire(elsewhere)
	require.True(t, held)
	_, held = acquire(New(r.Client, Space{Cluster: "another", VHost: "/"}, "q", "right"))
	require.True(t, held, "a queue of the same name in another cluster")
	require.NoError(t, b.Release(t.Context()), "is not b's to give back")
	_, held = acquire(a)
	require.True(t, held)
	require.NoError(t, a.Release(t.Context()))
	testenv.Eventually(t, time.Minute, "a lease that lasts for a time", func() bool {
		_, held = acquire(b)
		require.True(t, held)
		ttl, err := r.Client.PTTL(t.Context(), b.key).Result()
		require.NoError(t, err)
		require.LessOrEqual(t, ttl, length)
		return ttl > 0
	})

	r.Kill()
	_, _, err := a.Acquire(t.Context())
	require.Error(t, err)
}

// TestFlushWhileMessagesCome: what Redis has lost is missed although new deadlines are written all the time.
func TestFlushWhileMessagesCome(t *testing.T) {
	r := testenv.StartRedis(t)
	s := NewShadows(r.Client, Space{VHost: "/"}, "q", false, func() time.Duration { return 0 }, zap.NewNop())
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	defer func() { end(); require.NoError(t, <-done) }()
	deadlines, put := deadline.At(time.Now()).Add(time.Hour), uint64(0)
	more := func() bool {
		put++
		s.Put([]keeper.Shadow{{Fingerprint: put, Deadline: deadlines}})
		return len(s.Lost()) > 0
	}
	for range 3 {
		require.Eventually(t, func() bool {
			more()
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.anything
		}, time.Minute, 10*time.Millisecond)
		require.NoError(t, r.Client.FlushAll(t.Context()).Err())
		require.Eventually(t, more, time.Minute, 10*time.Millisecond, "the loss is noticed")
		<-s.Lost()
	}
}

func TestShadowsAreWrittenAndReadAgain(t *testing.T) {
	r := testenv.StartRedis(t)
	now := deadline.At(time.Now())
	want := []keeper.Shadow{
		{Fingerprint: 1, Deadline: now + 1e6},
		{Fingerprint: 1<<64 - 1, Deadline: now + 3600e6, AgeUnknown: true},
		{Fingerprint: 7, Deadline: now + 3600e6},
		{Fingerprint: 7, Deadline: now + 3600e6 + 1},
	}
	s := NewShadows(r.Client, Space{VHost: "v"}, "q", false, func() time.Duration { return -time.Hour }, zap.NewNop()) // and the clock of the next Curfew is two hours behind
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	stored := func(shadows []keeper.Shadow) func() bool {
		return func() bool {
			next := NewShadows(r.Client, Space{VHost: "v"}, "q", false, func() time.Duration { return -2 * time.Hour }, zap.NewNop())
			got, err := next.Load(t.Context())
			for i := range got {
				got[i].Deadline = got[i].Deadline.Add(time.Hour)
			}
			return err == nil && sameShadows(shadows, got)
		}
	}
	s.Put(want[:2])
	s.Put(want[2:])
	require.Eventually(t, stored(want), time.Minute, 10*time.Millisecond)

	r.Client.FlushAll(t.Context())
	<-s.Lost()
	s.Put(want[:3])
	require.Eventually(t, stored(want[:3]), time.Minute, 10*time.Millisecond)

	r.Kill()
	s.Put(want[3:])
	require.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.dropped }, time.Minute, 10*time.Millisecond)
	r.Restart()
	<-s.Lost()
	s.Put(want)
	require.Eventually(t, stored(want), time.Minute, 10*time.Millisecond)

	keys, err := r.Client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		ttl, err := r.Client.TTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.Positive(t, ttl, key)
	}
	cancel()
	require.NoError(t, <-done)
}

func sameShadows(a, b []keeper.Shadow) bool {
	count := map[keeper.Shadow]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestALongBacklogOfShadowsIsDroppedNotKept(t *testing.T) {
	s := NewShadows(nil, Space{VHost: "v"}, "q", false, func() time.Duration { return 0 }, zap.NewNop())
	s.Put(make([]keeper.Shadow, mostWaiting))
	require.False(t, s.dropped)
	s.Put(make([]keeper.Shadow, 1))
	require.True(t, s.dropped)
	require.Empty(t, s.waiting)
}
