package rabbitmq

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// TestExpiriesAreOnOneStream: each expiry that keepers and the observer report is published once, with its path.
func TestExpiriesAreOnOneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "other")
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		now := r.Now()
		k := r.keeper("keep-a")
		k.o.Expired([]keeper.Expiry{
			{Deadline: now, GivenBack: now.Add(4 * time.Millisecond)},
			{Deadline: now.Add(time.Hour), GivenBack: now, AgeUnknown: true},
		})
		r.observers[0].o.Expired([]deadline.Expiry{{VHost: "shop", Queue: "other", Path: deadline.Lazy, MessageID: []byte("m"),
			Ref: deadline.Ref{Deadline: 1000, Queue: 7, Seq: 3}, Arrived: 3000}})
		require.Len(t, r.expired, 3)
		require.Equal(t, deadline.Eager, r.expired[0].Path)
		require.Equal(t, deadline.DeadLettered, r.expired[0].Action)
		require.Equal(t, 4*time.Millisecond, r.expired[0].Lateness())
		require.Equal(t, deadline.Requeued, r.expired[1].Path, "whose lateness nobody knows")
		require.Equal(t, deadline.Lazy, r.expired[2].Path)
		require.Equal(t, "m", string(r.expired[2].MessageID))
		require.Equal(t, 2*time.Millisecond, r.expired[2].Lateness())
		require.NotEqual(t, r.expired[0].Ref, r.expired[1].Ref)
		require.NotEqual(t, r.expired[0].Ref.Queue, r.expired[2].Ref.Queue)
		row := r.row("keep-a")
		require.Equal(t, 5.0, *row.P99, "an upper bound, without the message of unknown age")
	})
}

// TestConsumersAreToldOf: an event reaches the keeper of its queue.
func TestConsumersAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "keep-b")
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		r.event(cluster.Event{Kind: cluster.ConsumerCreated, Queue: "keep-b", ConsumerTag: "app"})
		synctest.Wait()
		k := r.keeper("keep-b")
		require.Equal(t, []keeper.Event{{Kind: keeper.ConsumerCame, ConsumerTag: "app"}}, k.seen())
		require.Empty(t, r.keeper("keep-a").seen())
		r.event(cluster.Event{Kind: cluster.QueueDeleted, Queue: "keep-b"})
		synctest.Wait()
		require.Equal(t, keeper.Event{Kind: keeper.QueueDeleted}, k.seen()[1])

		for range 3 * eventsAtOnce {
			r.queues["keep-a"].tell(keeper.Event{Kind: keeper.ConsumerCame})
		}
		_, err := k.o.Connect(t.Context())
		require.Error(t, err)
		_, err = r.keeper("keep-a").o.Connect(t.Context())
		require.Error(t, err)
		require.Empty(t, r.queues["keep-a"].events, "what was told before a connection is of no use to it")
	})
}

// TestRefusedByTheKeeper: a queue that its keeper refuses is not kept, with the keeper's reason, until the keeper takes it again.
func TestRefusedByTheKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a")
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		r.keeper("keep-a").change(func(s *keeper.Status) {
			s.State, s.Code, s.Reason = keeper.Refused, keeper.DeliveryLimit, "a quarter is spent"
			s.Counts.Releases, s.LastRelease = 1, keeper.Release{At: r.Now(), Code: s.Code, Reason: s.Reason, Messages: 30}
		})
		require.Equal(t, "refused", r.row("keep-a").State)
		require.Equal(t, "delivery_limit", r.row("keep-a").Code)
		require.Equal(t, 1.0, testutil.ToFloat64(r.counts.releases.WithLabelValues("shop", "keep-a", "delivery_limit")))
		time.Sleep(time.Hour)
		require.Equal(t, []string{"keep-a: refused: a quarter is spent."}, r.Status().Reasons)
		r.keeper("keep-a").change(func(s *keeper.Status) {
			s.State, s.Code, s.Reason, s.LookedAt = keeper.Keeping, keeper.NoConsumer, "", r.Now()
		})
		require.Equal(t, "keeping", r.row("keep-a").State)
		require.Empty(t, r.Status().Reasons)
	})
}

// TestReleaseByAPolicy: when a policy ends the keeping, the release has that reason, and not that the process stopped.
func TestReleaseByAPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a")
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		rabbitmq.setPolicy("keep-a", map[string]any{"max-length": int64(10)})
		time.Sleep(time.Second)
		require.Equal(t, "refused", r.row("keep-a").State)
		require.Equal(t, 1.0, testutil.ToFloat64(r.counts.releases.WithLabelValues("shop", "keep-a", "settings")))
		require.Zero(t, testutil.ToFloat64(r.counts.releases.WithLabelValues("shop", "keep-a", "stop")))
	})
}

// TestOptionsOfKeepers: the settings of a rule reach the keeper.
func TestOptionsOfKeepers(t *testing.T) {
	p := newPrimary(Options{}, newFakeRabbitMQ(t), cluster.Address{})
	rule := cluster.Rule{Mode: cluster.Keep, Budget: cluster.Budget{Messages: 200_000, Bytes: 7, Holds: 5}}
	o := newQueueLocked(p, "keep-a", rule, 1).options()
	require.Equal(t, []any{200_000, int64(7), 5}, []any{o.MaxMessages, o.MaxBytes, o.TakeRate})
}
