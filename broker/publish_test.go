package broker_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

// The channels of a connection publish in one batch. None waits for the disk with
// something of another's open that the disk waits for.
func TestChannelsOfAConnectionDoNotWaitForEachOther(t *testing.T) {
	const limit = 64 << 20 // few bytes may wait in memory
	x := newTestBroker(t, broker.Options{Store: store.Options{Dir: t.TempDir()}, MemoryLimit: limit, MemoryInUse: func() int64 { return 0 }})
	x.queue("q", nil)
	rights := x.b.RightsOf("guest", "/")
	var channels []*broker.Publisher
	for range 8 {
		channels = append(channels, rights.NewPublisher(x.vh))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		publish := func(channel, size int) {
			routed, err := channels[channel].Add(&broker.Publication{RoutingKey: []byte("q"), Properties: []byte{0, 0}, Body: bytes.Repeat([]byte("x"), size)})
			assert.NoError(t, err)
			assert.True(t, routed)
		}
		const big = 2050*4096 - 2048 // a segment of its own, with room for a few small ones
		for i := range 3 {
			publish(i, big)
			for range 3 {
				publish(3+i, 10)
			}
		}
		publish(6, 5000)
		for _, c := range channels {
			assert.Empty(t, c.Flush(nil))
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("they wait for each other")
	}
}

// What a transaction has added and not flushed is nowhere, after a restart too;
// what was discarded is not in the way of what comes later.
func TestWhatIsNotFlushedIsNotThereAfterARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	add := func(body string) {
		p := amqp.Properties{DeliveryMode: 2}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte(body)})
		require.NoError(t, err)
	}
	add("rolled back")
	x.p.Discard()
	add("committed")
	add("committed too")
	x.p.Flush(nil)
	x.commit()
	add("open")
	x = restarted(t, o, x.b)
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	assert.Equal(t, []string{"committed", "committed too"}, x.drain(q))
	require.NoError(t, x.b.Close())
}

// What is costly waits for a turn where the publisher takes turns.
func TestCostlyPublishesAreRefusedOutsideOfTurns(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for i := range 1001 {
		name := fmt.Sprint("q", i)
		x.queue(name, nil)
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
	}
	r := x.b.RightsOf("guest", "/")
	p := r.NewPublisher(x.vh)
	p.TakesTurns = true
	add := func() error {
		_, err := p.Add(&broker.Publication{Exchange: []byte("amq.fanout"), Properties: []byte{0, 0}})
		return err
	}
	assert.Equal(t, broker.ErrCostly, add())
	require.True(t, r.BeginTurn(false, nil))
	assert.Equal(t, broker.ErrCostly, add(), "not in the turn of others")
	r.EndTurn()
	require.True(t, r.BeginTurn(true, nil))
	assert.NoError(t, add())
	p.Flush(nil)
	r.EndTurn()
	assert.Equal(t, broker.ErrCostly, add())
	ready, _, _ := x.called("q1000").Messages.Counts()
	assert.Equal(t, 1, ready)
	p.TakesTurns = false
	assert.NoError(t, add())
	p.Discard()
}
