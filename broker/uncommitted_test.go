package broker_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

// What a transaction has added and not flushed is nowhere, after a restart too;
// what was discarded is not in the way of what comes later.
func TestWhatIsNotFlushedIsNotThereAfterARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openBench(t, o)
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
	q, err := x.vh.Queue("q")
	require.NoError(t, err)
	assert.Equal(t, []string{"committed", "committed too"}, x.drain(q))
	require.NoError(t, x.b.Close())
}
