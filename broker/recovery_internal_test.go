package broker

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/store"
)

func TestClockIsKeptInTheDataDirectory(t *testing.T) {
	o := Options{Store: store.Options{Dir: t.TempDir()}}
	path := filepath.Join(o.Store.Dir, "clock")
	b, err := New(o)
	require.NoError(t, err)
	assert.Zero(t, b.ClockOffset())
	first, vh := b.env.Clock.Clock(), b.vhosts["/"]
	q, err := vh.Queues.Declare(nil, "q", QueueDeclare{Durable: true})
	require.NoError(t, err)
	p := vh.OwnPublisher()
	properties := amqp.Properties{DeliveryMode: 2, Expiration: "36000000"}
	_, err = p.Add(&Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)
	deadline := headDeadline(t, q)
	require.NoError(t, b.Close())

	// As if the wall clock had been an hour ahead when that run began.
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	saved := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&saved))
	alive, offset := number(t, saved["alive"]), number(t, saved["offset"])
	assert.GreaterOrEqual(t, alive, first)
	saved["offset"] = offset + int64(time.Hour)
	data, err = json.Marshal(saved)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	b, err = New(o)
	require.NoError(t, err)
	assert.InDelta(t, float64(first+int64(time.Hour)), float64(b.env.Clock.Clock()), float64(time.Minute))
	assert.Equal(t, time.Hour, b.ClockOffset())
	q, err = b.vhosts["/"].Queues.Get("q")
	require.NoError(t, err)
	assert.Equal(t, deadline, headDeadline(t, q))
	assert.Equal(t, deadline.UnixMilli()-3_600_000, b.UnixMillis(deadline), "shown as what the wall clock will say")
	q.Messages.Purge()
	require.NoError(t, b.Close())

	b, err = New(o)
	require.NoError(t, err)
	assert.Zero(t, b.ClockOffset(), "with no deadline pending it is the wall clock again")
	require.NoError(t, b.Close())

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = New(o)
	assert.ErrorContains(t, err, path)
}

func number(t *testing.T, v any) int64 {
	n, err := v.(json.Number).Int64()
	require.NoError(t, err)
	return n
}

// headDeadline is the deadline of the first message.
func headDeadline(t *testing.T, q *Queue) deadline.Instant {
	found, err := q.Messages.Browse(Browse{Count: 1})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0].Deadline
}
