package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestQueueLockedLong: a queue whose lock is held for long again and again is named once, with the longest operation.
func TestQueueLockedLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) {
			o.File = settingsFile(t, "runbooksURL: https://runbooks.example")
		})
		hold := func(queue, operation string, took time.Duration) {
			s.Record(Event{Kind: QueueLockedLong, VHost: "shop", Queue: queue, Hold: Hold{operation, took}, Stats: Stats{Count: 1}})
		}
		for range 50 {
			hold("once", "publish", time.Second) // the process had no processor
		}
		hold("orders", "expire", 25*time.Millisecond)
		time.Sleep(30 * time.Second)
		require.Empty(t, s.receiver.got())
		hold("orders", "purge", 1234567*time.Microsecond)
		synctest.Wait() // it is notified of
		hold("orders", "expire", 15*time.Millisecond)
		for range 20 {
			time.Sleep(10 * time.Second)
			hold("orders", "expire", 15*time.Millisecond)
		}
		posts := s.receiver.got()
		require.Len(t, posts, 1)
		require.Equal(t, map[string]string{"alertname": "CurfewQueueLockedLong", "vhost": "shop", "queue": "orders", "instance": "here", "severity": "warning"}, posts[0].CommonLabels)
		a := posts[0].CommonAnnotations
		require.Equal(t, `operations held the lock for long: 2 in queue "orders" of vhost "shop"; the longest, by the operation "purge", took 1.235s`, a["summary"])
		require.Equal(t, []string{"purge", "1.235s", "https://runbooks.example/CurfewQueueLockedLong.md"}, []string{a["operation"], a["longest_hold"], a["runbook_url"]})
		require.NotContains(t, a, "worst_lateness")
		time.Sleep(2 * time.Minute)
		require.Len(t, s.receiver.got(), 2)
		require.Equal(t, `operations held the lock for long: over, 23 in queue "orders" of vhost "shop"`, s.receiver.got()[1].CommonAnnotations["summary"])
		require.Empty(t, s.List())
	})
}
