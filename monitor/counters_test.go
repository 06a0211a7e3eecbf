package monitor

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestQueueNameThatIsNotText: its expiries are counted. Prometheus takes no such label, and would stop whoever fires.
func TestQueueNameThatIsNotText(t *testing.T) {
	a, reg := &ahead{}, prometheus.NewRegistry()
	_, err := New(Options{Source: a, Pending: a, Registerer: reg})
	require.NoError(t, err)
	a.stream.Publish([]deadline.Expiry{{VHost: "/", Queue: "a\xff", Action: deadline.DeadLettered, Path: deadline.Eager}})
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "curfew_deadlines_fired_total" {
			require.Equal(t, 1.0, f.GetMetric()[0].GetCounter().GetValue())
			return
		}
	}
	t.Error("not counted")
}

// TestShortLivedQueuesGiveWay: a queue that lasts has a metric of its own whatever many short ones have expired in before, once those are quiet.
func TestShortLivedQueuesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, reg := &ahead{}, prometheus.NewRegistry()
		_, err := New(Options{Source: a, Pending: a, Registerer: reg})
		require.NoError(t, err)
		expire := func(queue string) {
			a.stream.Publish([]deadline.Expiry{{VHost: "/", Queue: queue, Action: deadline.DeadLettered, Path: deadline.Eager}})
		}
		counted := func() (by map[string]float64) {
			families, err := reg.Gather()
			require.NoError(t, err)
			by = map[string]float64{}
			for _, f := range families {
				if f.GetName() == "curfew_deadlines_fired_total" {
					for _, m := range f.GetMetric() {
						for _, label := range m.GetLabel() {
							if label.GetName() == "queue" {
								by[label.GetValue()] += m.GetCounter().GetValue()
							}
						}
					}
				}
			}
			return by
		}
		expire("lasting")
		for i := range maxQueues {
			expire(fmt.Sprint("amq.gen-", i))
			expire(fmt.Sprint("reply-", i))
		}
		require.EqualValues(t, maxQueues, counted()["amq.gen-*"])
		require.EqualValues(t, 2, counted()[otherQueues])
		time.Sleep(unusedFor)
		expire("lasting")
		time.Sleep(time.Second)
		expire("payments")
		by := counted()
		require.EqualValues(t, 1, by["payments"])
		require.EqualValues(t, 2, by["lasting"])
		require.Zero(t, by["reply-7"])
	})
}

// TestDeletedQueuesGiveWay: the labels of a deleted queue are free a minute after its last expiry, if others need them. A queue that exists keeps its own.
func TestDeletedQueuesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &ahead{}
		m, err := New(Options{Source: a, Pending: a, Registerer: prometheus.NewRegistry()})
		require.NoError(t, err)
		for i := range uint64(maxQueues) {
			m.counters.add(i, "/", fmt.Sprint("queue ", i), 1)
		}
		label := func() string {
			_, queue := m.counters.add(maxQueues, "/", "important", 1)
			return queue
		}
		time.Sleep(deletedFor + time.Second)
		require.Equal(t, otherQueues, label(), "no forecast says that they are gone")
		m.counters.keep(map[uint64]*metered{7: {}})
		time.Sleep(time.Second)
		require.Equal(t, "important", label())
		require.Contains(t, m.counters.labels, [2]string{"/", "queue 7"})
		require.Len(t, m.counters.labels, 2)
	})
}
