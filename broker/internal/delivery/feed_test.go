package delivery

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Events come in order, however they are taken. A full feed says so once.
func TestFeedKeepsTheOrder(t *testing.T) {
	var f feed
	f.Signal = make(chan struct{}, 1)
	f.Push(make([]deadline.Event, 1)) // nobody wants it
	f.On.Store(true)
	rng := rand.New(rand.NewPCG(1, 1))
	pushed, taken := uint64(0), uint64(0)
	buf := make([]deadline.Event, 3*feedChunk)
	push := func(n int) {
		events := make([]deadline.Event, n)
		for i := range events {
			pushed++
			events[i].Ref.Seq = pushed
		}
		f.Push(events)
	}
	take := func(n int) {
		n, lagged := f.Take(buf[:n])
		require.False(t, lagged)
		for _, e := range buf[:n] {
			taken++
			require.Equal(t, taken, e.Ref.Seq)
		}
		require.EqualValues(t, pushed-taken, f.Pending())
	}
	for range 300 {
		push(rng.IntN(feedChunk))
		take(rng.IntN(feedChunk))
	}
	for f.Pending() > 0 {
		take(len(buf))
	}
	require.Len(t, f.chunks, 1)

	push(maxEvents)
	f.Push(make([]deadline.Event, 1))
	require.Zero(t, f.Pending())
	n, lagged := f.Take(buf)
	require.True(t, lagged)
	require.Equal(t, len(buf), n)
	_, lagged = f.Take(buf)
	require.False(t, lagged)
}

// A client that publishes deadlines faster than the monitor takes them waits, so that the feed does not lose those of others.
func TestPublisherWaitsForTheMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(Env)
		e.Feed.Signal = make(chan struct{}, 1)
		e.Feed.On.Store(true)
		take := func(n int) { e.Feed.Take(make([]deadline.Event, n)) }
		publish := func(n int, last bool) time.Duration {
			e.Feed.Push(make([]deadline.Event, n))
			s, began := &Transition{Env: e, Awaits: true, fed: n}, time.Now()
			s.awaitFeed(last)
			return time.Since(began)
		}
		require.Zero(t, publish(feedAhead, true), "the monitor keeps up")
		require.Zero(t, publish(1, false), "few, and more come")
		go func() {
			time.Sleep(5 * time.Millisecond)
			take(1000)
		}()
		require.InDelta(t, 5*time.Millisecond, publish(1, true), float64(time.Millisecond))
		for range feedStill / feedPatience {
			require.Equal(t, feedPatience, publish(queue.AtOnce+1000, false), "it does not keep up")
		}
		time.Sleep(feedPatience)
		require.Zero(t, publish(1, true), "it stands still")
		take(1)
		require.Equal(t, feedPatience, publish(1, true), "it goes on")
		take(maxEvents)
		time.Sleep(2 * feedStill)
		require.Equal(t, feedPatience, publish(feedAhead+1, true), "it had nothing to do")
		require.False(t, e.Feed.lagged)
	})
}
