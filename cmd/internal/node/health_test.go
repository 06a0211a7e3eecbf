package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/store"
	"curfew/monitor"
)

func TestMonitorHealth(t *testing.T) {
	now := time.Now()
	since := now.Add(-time.Hour)
	fine := monitor.Health{LastTick: now.Add(-time.Second)}
	assert.Equal(t, healthReport{Detail: fine}, monitorHealth(fine, since, now))

	degraded := monitor.Health{LastTick: now, Reasons: []string{"Redis is away"}}
	assert.Equal(t, healthReport{Reasons: []string{"Redis is away"}, Detail: degraded}, monitorHealth(degraded, since, now))

	silent := monitorHealth(monitor.Health{LastTick: now.Add(-time.Minute)}, since, now)
	assert.True(t, silent.Dead)
	assert.Equal(t, []string{"the loop that fires deadlines has been silent for 1m0s"}, silent.Reasons)

	assert.False(t, monitorHealth(monitor.Health{}, now.Add(-time.Second), now).Dead, "about to begin")
}

func TestClockHealth(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Second, -time.Second, clockLimit, -clockLimit} {
		assert.Equal(t, healthReport{}, clockHealth(ahead), "%s", ahead)
	}
	v := clockHealth(12 * time.Hour)
	require.Len(t, v.Reasons, 1)
	assert.Contains(t, v.Reasons[0], "12h0m0s ahead of the machine's")
	assert.False(t, v.Dead)
	assert.Contains(t, clockHealth(-clockLimit - time.Millisecond).Reasons[0], "5.001s behind the machine's")
}

// TestStoreHealth: health reports definitions that cannot be saved, and messages found without a definition.
func TestStoreHealth(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	b, err := broker.New(o)
	require.NoError(t, err)
	n := &Node{broker: b}
	require.Empty(t, n.storeHealth())
	_, err = b.SetGlobalParameter("large", strings.Repeat("x", 1<<20))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(o.Store.Dir, "definitions.tmp"), 0o700)) // where the file is rewritten
	_, err = b.SetGlobalParameter("large", strings.Repeat("y", 1<<20))
	require.NoError(t, err, "there is room for one more in the file")
	_, err = b.SetGlobalParameter("large", strings.Repeat("z", 1<<20))
	require.Error(t, err)
	// The old value, which counts again, does not fit either. If it did, the store would write it a moment later, and health would be fine.
	require.Len(t, n.storeHealth().Reasons, 1)
	require.Contains(t, n.storeHealth().Reasons[0], "cannot be created or changed")
	require.NoError(t, os.Remove(filepath.Join(o.Store.Dir, "definitions.tmp")))
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.Empty(t, n.storeHealth())
	p := vh.OwnPublisher()
	m := amqp.Properties{DeliveryMode: 2}
	_, err = p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: m.Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)
	require.NoError(t, b.Close())

	s, _, err := store.Open(o.Store)
	require.NoError(t, err)
	s.Define(store.Definition{Key: `queue "/" "q"`})
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())
	n.broker, err = broker.New(o)
	require.NoError(t, err)
	vh, _ = n.broker.VHost("/")
	require.Len(t, n.storeHealth().Reasons, 1)
	require.Contains(t, n.storeHealth().Reasons[0], "without the definition of their queue were put into 1 queue(s)")
	_, err = vh.Queues.Delete(nil, fmt.Sprint(broker.RecoveredPrefix, q.ID()), false, false)
	require.NoError(t, err)
	require.Empty(t, n.storeHealth())
	require.NoError(t, n.broker.Close())
}
