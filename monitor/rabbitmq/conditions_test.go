package rabbitmq

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// conditionsOf returns name and reason of the present conditions of a queue; "": those of all.
func (r *running) conditionsOf(queue string) (all [][2]string) {
	for _, c := range r.Conditions() {
		if c.Affected == queue {
			all = append(all, [2]string{c.Name, c.Reason})
		}
	}
	return all
}

// TestAWantedQueueThatIsNotKeptIsACondition: whatever the keeper's reason is, after ten seconds it is a condition, and ends when the queue is kept.
func TestAWantedQueueThatIsNotKeptIsACondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "keep-b", "other")
		rabbitmq.setPolicy("keep-b", map[string]any{"max-length": int64(10)})
		a := newRunning(t, rabbitmq, "a", nil).start()
		time.Sleep(9 * time.Second)
		require.Empty(t, a.conditionsOf("keep-a"))
		require.Empty(t, a.conditionsOf("keep-b"))
		time.Sleep(2 * time.Second)
		require.Equal(t, "not_kept", a.conditionsOf("keep-b")[0][0], "it is refused")
		require.Empty(t, a.conditionsOf("other"))

		for _, why := range []struct {
			state  keeper.State
			code   keeper.Code
			reason string
		}{
			{keeper.StandingAside, keeper.Consumer, "another consumer came"},
			{keeper.Refused, keeper.Permission, "ACCESS_REFUSED"},
			{keeper.Observing, keeper.Connection, "connection lost"},
		} {
			k := a.keeper("keep-a")
			k.hold(keeper.Status{State: why.state, Code: why.code, Reason: why.reason})
			time.Sleep(9 * time.Second)
			require.Empty(t, a.conditionsOf("keep-a"), why.reason)
			time.Sleep(2 * time.Second)
			require.Len(t, a.conditionsOf("keep-a"), 1, why.reason)
			require.Contains(t, a.conditionsOf("keep-a")[0][1], why.reason)
			require.Equal(t, string(why.code), a.row("keep-a").Code)
			require.WithinDuration(t, time.Now().Add(-11*time.Second), time.UnixMilli(a.row("keep-a").NotKeptSince), time.Second)
			k.hold(keeper.Status{State: keeper.Keeping, LookedAt: a.Now()})
			require.Empty(t, a.conditionsOf("keep-a"))
			require.Zero(t, a.row("keep-a").NotKeptSince)
		}
		time.Sleep(11 * time.Second)
		require.Equal(t, "no_answer", a.row("keep-a").Code, "the queue has lost its leader: RabbitMQ does not answer")
		require.Contains(t, a.conditionsOf("keep-a")[0][1], "it may have no leader")

		rabbitmq.attach("keep-a", "curfew.keeper.b.7")
		deadline.Wake(a.looks)
		time.Sleep(sharedFor + time.Second)
		a.keeper("keep-a").hold(keeper.Status{State: keeper.Keeping, LookedAt: a.Now()})
		require.Equal(t, "shared", a.conditionsOf("keep-a")[0][0])
		require.Contains(t, a.conditionsOf("keep-a")[0][1], "another Curfew, b, consumes")
		a.stop()
	})
}

// TestConditionsOfAll: a wrong password, statistics that cannot be read, and replicas that cannot agree which cluster they are beside.
func TestConditionsOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.fail(errors.New("username or password not allowed"))
		a := newRunning(t, rabbitmq, "a", nil).start()
		time.Sleep(time.Second)
		require.Equal(t, "inventory", a.conditionsOf("")[0][0])
		require.Contains(t, a.conditionsOf("")[0][1], "password not allowed")
		rabbitmq.fail(nil)
		rabbitmq.set(cluster.Changed, func(map[string]cluster.Queue) { rabbitmq.unread = []string{"statistics of queues: odd"} })
		time.Sleep(time.Second)
		require.Equal(t, "statistics", a.conditionsOf("")[0][0])
		rabbitmq.set(cluster.Changed, func(map[string]cluster.Queue) { rabbitmq.unread = nil })
		time.Sleep(time.Second)
		require.Empty(t, a.Conditions())
		a.stop()
	})
}
