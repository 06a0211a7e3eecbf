package alert

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func heldEvent(n int64, again bool) Event {
	return Event{Kind: HeldPastDeadline, VHost: "/", Queue: "orders", Again: again, Stats: Stats{Count: n, FirstDeadlineAt: 1}}
}

// TestHoldersAreNamed: the alert says who holds how many now, not how many were held since it began.
func TestHoldersAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[[]PastDeadline]
		s := run(t, func(o *Options) { o.Holders = func() []PastDeadline { return *now.Load() } })
		due := time.Now().UnixMilli()
		holder := func(name, queue string, n int) PastDeadline {
			return PastDeadline{VHost: "/", Queue: queue, Connection: name, User: "shop", Address: "10.0.0.7:4711", Count: n, FirstDeadlineAt: due}
		}
		holders := []PastDeadline{holder("quick", "orders", 3), holder("stuck", "orders", 8), holder("another", "other", 99), holder("c", "orders", 2), holder("d", "orders", 2)}
		now.Store(&holders)
		s.Record(heldEvent(2000, false))
		s.Record(heldEvent(272, false))
		time.Sleep(11 * time.Second)
		posts := s.receiver.got()
		require.Len(t, posts, 1)
		summary := posts[0].CommonAnnotations["summary"]
		require.Contains(t, summary, `consumers hold messages past their deadlines: 15 in queue "orders" of vhost "/"; "stuck" (user "shop" at 10.0.0.7:4711) holds 8, the longest 1 s past its deadline; "quick"`)
		require.Contains(t, summary, `; and 1 more`)
		require.NotContains(t, summary, "another")
		require.Contains(t, posts[0].Alerts[0].Annotations["holders"], `"stuck"`)

		now.Store(new(holders[:1]))
		time.Sleep(time.Second)
		require.Contains(t, s.List()[0].Summary, `: 3 in queue "orders"`)
		time.Sleep(40 * time.Second)
		time.Sleep(time.Second)
		require.Contains(t, s.List()[0].Summary, "the longest 53 s past its deadline")
		require.Equal(t, "53s", s.List()[0].Annotations["worst_lateness"])
		now.Store(new([]PastDeadline))
		time.Sleep(time.Second)
		require.Contains(t, s.List()[0].Summary, "none is held any longer")
		time.Sleep(5 * time.Minute)
		require.Equal(t, "resolved", s.receiver.got()[1].Status)
		require.Empty(t, s.List())
	})
}

// TestHeldForAMomentIsNoAlert: what came back before anybody was notified. What lasts is one, though nobody is found who holds it.
func TestHeldForAMomentIsNoAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.Holders = func() []PastDeadline { return nil } })
		s.Record(heldEvent(5, false))
		time.Sleep(20 * time.Second)
		require.Empty(t, s.receiver.got())
		s.Record(heldEvent(5, true))
		time.Sleep(time.Minute)
		require.Len(t, s.receiver.got(), 1)
	})
}

// TestHoldersAreAskedOnceASecond, and only while there is an alert about them.
func TestHoldersAreAskedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		s := run(t, func(o *Options) { o.Holders = func() []PastDeadline { asked.Add(1); return nil } })
		s.Record(missed("a", 1))
		time.Sleep(time.Hour)
		s.List()
		require.Zero(t, asked.Load())
		s.Record(heldEvent(1, false))
		for range 1000 {
			s.List()
		}
		synctest.Wait()
		require.EqualValues(t, 1, asked.Load())
	})
}
