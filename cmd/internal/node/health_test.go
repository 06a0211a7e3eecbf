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
	"curfew/monitor/incident"
)

// TestSilence: after a loop that fires has been silent for long, only a restart helps.
func TestSilence(t *testing.T) {
	now := time.Now()
	since := now.Add(-time.Hour)
	assert.False(t, silent(monitor.Health{LastTick: now.Add(-time.Second)}, since, now))
	assert.True(t, silent(monitor.Health{LastTick: now.Add(-time.Minute)}, since, now))
	assert.False(t, silent(monitor.Health{}, now.Add(-time.Second), now), "about to begin")
}

// TestStoreHealth: health reports definitions that cannot be saved, and messages found without a definition.
func TestStoreHealth(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	b, err := broker.New(o)
	require.NoError(t, err)
	n := &ownBroker{broker: b}
	found := func() (list []string) {
		var s incident.State
		s.Unsaved, s.Recovered = n.broker.Unsaved(), n.broker.Adopted()
		for _, one := range incident.Evaluate(&s) {
			list = append(list, one[0].Text)
		}
		return list
	}
	require.Empty(t, found())
	_, err = b.SetGlobalParameter("large", strings.Repeat("x", 1<<20))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(o.Store.Dir, "definitions.tmp"), 0o700)) // where the file is rewritten
	_, err = b.SetGlobalParameter("large", strings.Repeat("y", 1<<20))
	require.NoError(t, err, "there is room for one more in the file")
	_, err = b.SetGlobalParameter("large", strings.Repeat("z", 1<<20))
	require.Error(t, err)
	// The old value, which counts again, does not fit either. If it did, the store would write it a moment later, and health would be fine.
	require.Len(t, found(), 1)
	require.Contains(t, found()[0], "cannot be created or changed")
	require.NoError(t, os.Remove(filepath.Join(o.Store.Dir, "definitions.tmp")))
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.Empty(t, found())
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
	require.Len(t, found(), 1)
	require.Contains(t, found()[0], "they were put into 1 queue named")
	_, err = vh.Queues.Delete(nil, fmt.Sprint(broker.RecoveredPrefix, q.ID), broker.QueueDeletion{})
	require.NoError(t, err)
	require.Empty(t, found())
	require.NoError(t, n.broker.Close())
}
