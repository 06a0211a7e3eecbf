package broker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

func TestTimelineOverARestart(t *testing.T) {
	const hour = int64(time.Hour)
	last := timeline{Boot: "a", Offset: 1000 * hour, Alive: 1010 * hour} // up for 10 hours
	now := func(next timeline, up int64) int64 { return next.Offset + up }
	for _, c := range []struct {
		name     string
		boot     string
		wall, up int64
		want     int64
	}{
		{"same boot", "a", 1011 * hour, 11 * hour, 1011*hour - elapsedError},
		{"same boot, wall an hour ahead: nothing is early", "a", 1012 * hour, 11 * hour, 1011*hour - elapsedError},
		{"same boot, wall an hour back: nothing is late", "a", 1010 * hour, 11 * hour, 1011*hour - elapsedError},
		{"rebooted", "b", 1011 * hour, hour / 2, 1011 * hour},
		{"rebooted, wall a day back: goes on from when it was alive", "b", 987 * hour, hour / 2, 1010 * hour},
		{"boot unknown", "", 1011 * hour, hour / 2, 1011 * hour},
	} {
		assert.Equal(t, c.want, now(last.resumed(c.boot, c.wall, c.up), c.up), c.name)
	}
	assert.Equal(t, 5*hour, now(timeline{}.resumed("a", 5*hour, hour), hour), "the first run goes by the wall")
}

func TestClockIsKeptInTheDataDirectory(t *testing.T) {
	o := Options{Store: store.Options{Dir: t.TempDir()}}
	path := filepath.Join(o.Store.Dir, timelineFile)
	b, err := New(o)
	require.NoError(t, err)
	assert.Zero(t, b.ClockOffset())
	first, vh := b.clock(), b.vhosts["/"]
	q, err := vh.DeclareQueue(nil, "q", QueueDeclare{Durable: true})
	require.NoError(t, err)
	p := vh.OwnPublisher()
	properties := amqp.Properties{DeliveryMode: 2, Expiration: "36000000"}
	_, err = p.Add(&Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)
	deadline := q.head().ExpiresAt
	require.NoError(t, b.Close())

	// As if the wall clock had been an hour ahead when that run began.
	saved, err := readTimeline(path)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, saved.Alive, first)
	saved.Offset += int64(time.Hour)
	require.NoError(t, saved.write(path, saved.Alive))
	b, err = New(o)
	require.NoError(t, err)
	assert.InDelta(t, float64(first+int64(time.Hour)), float64(b.clock()), float64(time.Minute))
	assert.Equal(t, time.Hour, b.ClockOffset())
	q, err = b.vhosts["/"].Queue("q")
	require.NoError(t, err)
	assert.Equal(t, deadline, q.head().ExpiresAt)
	assert.Equal(t, millis(deadline)-3_600_000, b.UnixMillis(deadline), "shown as what the wall clock will say")
	q.Purge()
	require.NoError(t, b.Close())

	b, err = New(o)
	require.NoError(t, err)
	assert.Zero(t, b.ClockOffset(), "with no deadline pending it is the wall clock again")
	require.NoError(t, b.Close())

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = New(o)
	assert.ErrorContains(t, err, path)
}

func (q *Queue) head() queue.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, m, _ := q.core.Head()
	return m
}
