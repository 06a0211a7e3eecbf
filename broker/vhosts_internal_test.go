package broker

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// fullVHost makes a virtual host with as many durable queues and bindings, a policy, a delayed message, and a message in each queue.
func fullVHost(t *testing.T, b *Broker, name string, queues, bindings int) *VHost {
	_, _, err := b.PutVHost("guest", name, VHostMetadata{})
	require.NoError(t, err)
	require.NoError(t, b.Change(name, func(c *Broker) error {
		vh, _ := c.VHost(name)
		for i := range queues {
			_, err := vh.Queues.Declare(nil, "q"+strconv.Itoa(i), QueueDeclare{Durable: true})
			require.NoError(t, err)
		}
		for i := range bindings {
			require.NoError(t, vh.Bind(nil, Binding{Source: "amq.topic", Destination: "q" + strconv.Itoa(i%queues), RoutingKey: "key." + strconv.Itoa(i)}))
		}
		_, err := vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "^q", ApplyTo: policy.Queues, Definition: policy.Definition{"max-length": int64(5)}})
		return err
	}))
	vh, _ := b.VHost(name)
	p := vh.NewPublisher("guest")
	properties := amqp.Properties{DeliveryMode: 2}
	for i := range queues {
		_, err := p.Add(&Publication{RoutingKey: []byte("q" + strconv.Itoa(i)), Properties: properties.Append(nil), Body: []byte("x")})
		require.NoError(t, err)
	}
	delayed := amqp.Properties{DeliveryMode: 2, Headers: amqp.Table{"x-delay": int32(3_600_000)}}
	_, err = p.Add(&Publication{RoutingKey: []byte("q0"), Properties: delayed.Append(nil), Body: []byte("x")})
	require.NoError(t, err)
	p.Flush(nil)
	committed := make(chan error, 1)
	b.env.Store.Commit(func(err error) { committed <- err })
	require.NoError(t, <-committed)
	return vh
}

// messagesIn counts the messages in queues, and those that are delayed.
func messagesIn(b *Broker) (n int) {
	b.Loads(func(_ *Queue, messages, _ int, _ *QueueStats) { n += messages })
	return n + b.delayedMessages()
}

// TestEndedVHostStaysAway: a virtual host whose deletion a crash cuts off is gone with everything in it, wherever that was, and a new one of its
// name is empty. Until what was in it is undefined, whoever makes one of its name waits.
func TestEndedVHostStaysAway(t *testing.T) {
	dir := t.TempDir()
	b, err := New(Options{Store: store.Options{Dir: dir}})
	require.NoError(t, err)
	vh := fullVHost(t, b, "v", 600, 2000)
	ended, delays, err := b.endVHost(vh)
	require.NoError(t, err)
	require.NoError(t, b.catalog.Sync())
	crashes := []string{CopyOfRunning(t, dir)}

	made := make(chan *VHost)
	go func() {
		vh, created, err := b.PutVHost("", "v", VHostMetadata{})
		assert.True(t, created)
		assert.NoError(t, err)
		made <- vh
	}()
	undefined := make(chan error, 1)
	go func() { undefined <- ended.Undefine() }()
	for running := true; running; {
		crashes = append(crashes, CopyOfRunning(t, dir))
		select {
		case err := <-undefined:
			require.NoError(t, err)
			running = false
		case <-made:
			require.Fail(t, "definitions of the old one may still be there")
		default:
		}
	}
	b.free("v")
	require.Empty(t, (<-made).Queues.List())
	crashes = append(crashes, CopyOfRunning(t, dir))
	ended.RemoveQueues()
	b.delays.byID.Delete(delays.ID())
	delays.Delete()
	require.Zero(t, messagesIn(b))
	require.NoError(t, b.Close())

	t.Logf("%d crashes", len(crashes))
	for i, dir := range append(crashes, dir) {
		for range 2 { // what a start removes is removed for good
			b, err := New(Options{Store: store.Options{Dir: dir}})
			require.NoError(t, err, "crash %d", i)
			assert.Zero(t, messagesIn(b), "crash %d", i)
			for _, vh := range b.VHosts() {
				for _, q := range vh.Queues.List() {
					assert.False(t, strings.HasPrefix(q.Name, RecoveredPrefix), "crash %d: %s", i, q.Name)
				}
			}
			vh, _, err := b.PutVHost("", "v", VHostMetadata{})
			require.NoError(t, err)
			assert.Empty(t, vh.Queues.List(), "crash %d", i)
			assert.Empty(t, vh.Policies.List(policy.User), "crash %d", i)
			assert.Empty(t, vh.Bindings(), "crash %d", i)
			require.NoError(t, b.Close())
		}
	}
}
