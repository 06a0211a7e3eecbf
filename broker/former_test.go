package broker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
)

// TestFormerRoutes: what is published to a durable queue that clients consumed is counted once somebody has deleted it, by the keys that name it exactly. That
// nobody is bound to a pattern or a fanout, or that a temporary queue is gone, is ordinary.
func TestFormerRoutes(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for _, kind := range []string{"direct", "topic", "fanout"} {
		require.NoError(t, x.vh.Exchanges.Declare(kind, broker.ExchangeDeclare{Kind: kind}))
	}
	for name, d := range map[string]broker.QueueDeclare{
		"orders": {Durable: true}, "never consumed": {Durable: true}, "temporary": {}, "auto": {Durable: true, AutoDelete: true}, "there": {Durable: true},
	} {
		q, err := x.vh.Queues.Declare(nil, name, d)
		require.NoError(t, err)
		if name != "never consumed" {
			q.NoteConsumed()
		}
		for _, b := range [][2]string{{"direct", name}, {"topic", name}, {"topic", name + ".#"}, {"fanout", name}} {
			require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: b[0], Destination: name, RoutingKey: b[1]}))
		}
		if name != "there" {
			_, err = x.vh.Queues.Delete(nil, name, broker.QueueDeletion{})
			require.NoError(t, err)
		}
	}
	require.NoError(t, x.vh.Unbind(nil, broker.Binding{Source: "fanout", Destination: "there", RoutingKey: "there"}))
	for _, exchange := range []string{"", "direct", "topic", "fanout"} {
		for _, key := range []string{"orders", "orders.new", "never consumed", "temporary", "auto", "there"} {
			x.publish(exchange, key, "m", "", nil)
		}
	}
	of := map[string]int64{}
	for _, r := range x.vh.Former.List() {
		require.Equal(t, "orders", r.Queue)
		of[r.Exchange+"/"+r.Key] = r.Count
	}
	require.Equal(t, map[string]int64{"/orders": 1, "direct/orders": 1, "topic/orders": 1}, of)
	fanout, err := x.vh.Exchanges.Get("fanout")
	require.NoError(t, err)
	require.EqualValues(t, 6, fanout.Unrouted)

	x.queue("orders", nil)
	x.publish("", "orders", "m", "", nil)
	require.EqualValues(t, 1, x.vh.Former.List()[0].Count, "it is there again")
}

// TestFormerRoutesOfQueuesThatComeAndGo: where queues are deleted all the time, those of the last hour are watched.
func TestFormerRoutesOfQueuesThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		remove := func(name string) {
			q, err := x.vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true})
			require.NoError(t, err)
			q.NoteConsumed()
			_, err = x.vh.Queues.Delete(nil, name, broker.QueueDeletion{})
			require.NoError(t, err)
			x.publish("", name, "m", "", nil)
		}
		for i := range 1001 {
			remove(fmt.Sprint(i))
		}
		require.Len(t, x.vh.Former.List(), 1000)
		time.Sleep(61 * time.Minute)
		remove("orders")
		require.Len(t, x.vh.Former.List(), 1)
	})
}
