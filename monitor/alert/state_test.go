package alert

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func silence(peer string, due int64) SilentInstance {
	return SilentInstance{
		Peer: peer, Due: due, OldestAt: 1_000, LateMillis: 30_000,
		Queues: []QueueDue{{"/", "orders", due - 1}, {"shop", "mails", 1}},
	}
}

func TestSilentIsToldUntilHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for due := range int64(3600) { // every ten seconds, ten hours
			s.Silent(silence("b", 100+due))
			time.Sleep(10 * time.Second)
		}
		s.Silent(silence("c", 5))
		time.Sleep(2 * time.Second)
		s.Heard("b")
		s.Heard("unknown")
		time.Sleep(time.Second)
		posts := s.receiver.got()
		require.Len(t, posts, 5, "b three times in ten hours, c, b is over")
		first := posts[0]
		require.Equal(t, map[string]string{"alertname": "CurfewInstanceSilent", "peer": "b"}, first.GroupLabels)
		require.Equal(t, "here", first.CommonLabels["instance"], "who says so")
		require.Equal(t, "critical", first.CommonLabels["severity"])
		require.Equal(t, map[string]string{
			"summary":        `instance "b" is silent and 100 of its deadlines have passed: 99 in queue "orders" of vhost "/", 1 in queue "mails" of vhost "shop"`,
			"count":          "100",
			"first_deadline": "1970-01-01T00:00:01.000Z",
			"worst_lateness": "30s",
			"queues":         `99 in queue "orders" of vhost "/", 1 in queue "mails" of vhost "shop"`,
		}, first.CommonAnnotations)
		require.Equal(t, "1540", posts[1].CommonAnnotations["count"], "four hours later")
		require.Equal(t, "c", posts[3].CommonLabels["peer"])
		require.Equal(t, "resolved", posts[4].Status)
		require.Equal(t, map[string]string{"summary": `instance "b" is silent: over`}, posts[4].CommonAnnotations)
		require.Equal(t, first.Alerts[0].Fingerprint, posts[4].Alerts[0].Fingerprint)
	})
}

func TestStatesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		a, err := New(Options{Log: zap.New(core)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		a.Silent(silence("told", 1))
		time.AfterFunc(time.Minute, func() {
			a.Silent(silence("told", 2))
			a.Silent(silence("unsent", 3))
			cancel()
		})
		require.NoError(t, a.Run(ctx))
		require.Equal(t, 1, logs.FilterField(zap.String("peer", "told")).Len())
		require.Equal(t, 1, logs.FilterField(zap.String("peer", "unsent")).Len())
	})
}
