package broker_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// fillDefinitions leaves no room for a definition, as on a full disk, until free is called:
// the file is full, and something stands where it would be made again.
func (x *testBroker) fillDefinitions(dir string) (free func()) {
	x.t.Helper()
	inTheWay := filepath.Join(dir, "definitions.tmp")
	require.NoError(x.t, os.Mkdir(inTheWay, 0o700))
	for i, size := 0, 1<<14; size > 0; i++ {
		if _, err := x.b.SetGlobalParameter(fmt.Sprint("filler", i), strings.Repeat("x", size)); err != nil {
			size /= 2
		}
	}
	return func() { require.NoError(x.t, os.Remove(inTheWay)) }
}

// dying is a copy of what is in a broker's directory, as a start finds it if the process
// dies now.
func dying(t *testing.T, dir string) (copied string) {
	t.Helper()
	copied = t.TempDir()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			continue // in the way of definitions
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, ".tmp") {
			continue // it has been given its name meanwhile; nothing is in it
		}
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(copied, filepath.Base(name)), data, 0o600))
	}
	return copied
}

// killed opens a broker as if the process of another had died. It is closed with the test.
func killed(t *testing.T, o broker.Options) *testBroker {
	t.Helper()
	o.Store.Dir = dying(t, o.Store.Dir)
	x := openTestBroker(t, o)
	t.Cleanup(func() { assert.NoError(t, x.b.Close()) })
	return x
}

func (x *testBroker) persistent(key, body string) (routed bool) {
	x.t.Helper()
	p := amqp.Properties{DeliveryMode: 2}
	routed, err := x.p.Add(&broker.Publication{RoutingKey: []byte(key), Properties: p.Append(nil), Body: []byte(body)})
	require.NoError(x.t, err)
	x.p.Flush(nil)
	x.commit()
	return routed
}

// TestWhatIsNotSavedIsNotThere: nothing can be used that a crash would take away, messages
// and all; when there is room again it can be made.
func TestWhatIsNotSavedIsNotThere(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	x := openTestBroker(t, o)
	x.durable("there", nil)
	require.NoError(t, x.b.Accounts.PutUser(access.User{Name: "u", Tags: []string{"monitoring"}}))
	free := x.fillDefinitions(o.Store.Dir)
	before := shape(x.b)
	lowered := policy.Policy{Name: "p", Pattern: ".*", ApplyTo: policy.Queues, Definition: policy.Definition{"max-length": int64(0)}}
	bound := broker.Binding{Source: "amq.fanout", Destination: "there"}
	makes := []func() error{
		func() error {
			_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
			return err
		},
		func() error {
			_, err := x.vh.Queues.Declare(nil, "s", broker.QueueDeclare{Durable: true, Args: amqp.Table{"x-dead-letter-queue": true}})
			return err
		},
		func() error {
			return x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Durable: true})
		},
		func() error { return x.vh.Bind(nil, bound) },
		func() error { _, err := x.vh.Policies.Set(policy.User, lowered); return err },
		func() error { return x.vh.SetLimits(access.Limits{"max-queues": 9}) },
		func() error { _, _, err := x.b.PutVHost("", "v", broker.VHostMetadata{}); return err },
		func() error { return x.vh.SetProtected(true) },
		func() error { _, _, err := x.b.PutVHost("u", "u's", broker.VHostMetadata{}); return err },
		func() error { return x.b.Accounts.PutUser(access.User{Name: "u", Tags: []string{"administrator"}}) },
		func() error { return x.b.Accounts.PutUser(access.User{Name: "w"}) },
		func() error {
			return x.b.Accounts.SetPermission(access.Permission{User: "u", VHost: "/", Configure: ".*"})
		},
		func() error {
			return x.b.Accounts.SetTopicPermission(access.TopicPermission{User: "u", VHost: "/", Exchange: "amq.topic", Write: ".*"})
		},
		func() error { _, err := x.b.SetGlobalParameter("g", "1"); return err },
	}
	for i, change := range makes {
		require.ErrorContains(t, change(), "save definitions", "change %d", i)
		require.Equal(t, before, shape(x.b), "change %d", i)
	}
	require.Error(t, x.b.Unsaved())
	assert.False(t, x.persistent("q", "lost if q were there"))
	assert.True(t, x.persistent("there", "kept"))
	assert.Equal(t, before, shape(killed(t, o).b))

	free()
	for i, change := range makes {
		require.NoError(t, change(), "change %d", i)
	}
	require.NoError(t, x.b.Unsaved())
	_, err := x.vh.Policies.Clear(policy.User, "p") // it would drop what comes
	require.NoError(t, err)
	assert.True(t, x.persistent("q", "kept"))
	y := killed(t, o)
	assert.Equal(t, shape(x.b), shape(y.b))
	assert.Equal(t, "1", y.depths("q"))
	require.NoError(t, x.b.Close())
}

// TestWhatIsThereIsSaved: whatever is tried, and while definitions can be saved and while
// they cannot, nothing is there that a crash would take away; and what is deleted is gone
// for good as soon as there is room.
func TestWhatIsThereIsSaved(t *testing.T) {
	died := newDied(t)
	for seed := range uint64(3) {
		o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
		x := openTestBroker(t, o)
		m := &meddler{x.b, rand.New(rand.NewPCG(seed, 7))}
		for range 2 {
			for range 40 {
				m.step()
			}
			free := x.fillDefinitions(o.Store.Dir)
			for range 40 {
				m.step()
			}
			require.Subset(t, died.shape(o), shape(x.b), "seed %d", seed)
			free()
			_, err := x.b.SetGlobalParameter("g", "saved")
			require.NoError(t, err)
			require.Equal(t, shape(x.b), died.shape(o), "seed %d", seed)
		}
		require.NoError(t, x.b.Close())
	}
}

// Clients that declare the same at the same time get the same answer, and nobody sees it before.
func TestDeclaredByManyAtOnce(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	x := openTestBroker(t, o)
	free := x.fillDefinitions(o.Store.Dir)
	declare := func() (made [20]*broker.Queue, errs [20]error) {
		var all sync.WaitGroup
		for i := range made {
			all.Go(func() { made[i], errs[i] = x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true}) })
		}
		all.Wait()
		return made, errs
	}
	stop, seen := make(chan struct{}), make(chan bool, 1)
	go func() {
		for {
			_, err := x.vh.Queues.Get("q")
			select {
			case <-stop:
				seen <- err == nil
				return
			default:
			}
			if err == nil {
				seen <- true
				return
			}
		}
	}()
	_, errs := declare()
	for _, err := range errs {
		require.Error(t, err)
	}
	close(stop)
	require.False(t, <-seen)
	free()
	made, errs := declare()
	for i := range made {
		require.NoError(t, errs[i])
		require.Same(t, made[0], made[i])
	}
	require.NoError(t, x.b.Close())
}

// TestExpiringQueuesDoNotWaitForTheDisk: what is due in others comes to pass while it is
// being saved that one is gone.
func TestExpiringQueuesDoNotWaitForTheDisk(t *testing.T) {
	core, _ := observer.New(zap.ErrorLevel)
	var told, release chan struct{}          // of the bubble
	waiting := func(e zapcore.Entry) error { // as long as the disk takes, and then the answer comes
		if strings.HasPrefix(e.Message, "deleted queue") {
			told <- struct{}{}
			<-release
		}
		return nil
	}
	o := broker.Options{Log: zap.New(core, zap.Hooks(waiting)), Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	inBubble(t, o, func(x *testBroker) {
		told, release = make(chan struct{}, 9), make(chan struct{})
		for i := range 3 {
			x.durable(fmt.Sprint("durable", i), amqp.Table{"x-expires": int64(1000 + i)})
		}
		x.queue("later", amqp.Table{"x-expires": int64(5000)})
		free := x.fillDefinitions(o.Store.Dir)
		<-told
		after(10 * time.Second)
		for _, name := range []string{"durable0", "durable1", "durable2", "later"} {
			assert.False(t, x.exists(name), name)
		}
		free()
		close(release)
		after(5 * time.Second)
		assert.NoError(t, x.b.Unsaved())
		y := openTestBroker(t, broker.Options{Store: store.Options{Dir: dying(t, o.Store.Dir)}})
		assert.Empty(t, y.vh.Queues.List())
		require.NoError(t, y.b.Close())
	})
}

// TestDeadLettersWaitForTheQueueToParkThem: they stay where a crash finds them.
func TestDeadLettersWaitForTheQueueToParkThem(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	inBubble(t, o, func(x *testBroker) {
		q := x.durable("q", amqp.Table{"x-dead-letter-exchange": "nowhere"})
		free := x.fillDefinitions(o.Store.Dir)
		for range 3 {
			p := amqp.Properties{DeliveryMode: 2, Expiration: "10"}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
			require.NoError(t, err)
		}
		x.p.Flush(nil)
		time.Sleep(time.Second)
		x.b.Deadlines().Expire(x.deadlines(), deadline.Eager, true, nil)
		after(time.Millisecond)
		x.commit()
		assert.Equal(t, 3, q.Messages.Retained.Count())
		_, err := x.vh.Queues.Get(policy.UndeliverableQueue)
		assert.Error(t, err)
		dead := dying(t, o.Store.Dir)
		free()
		time.Sleep(5 * time.Second)
		assert.Zero(t, q.Messages.Retained.Count())
		assert.Equal(t, "0 3", x.depths("q", policy.UndeliverableQueue))

		y := openTestBroker(t, broker.Options{Store: store.Options{Dir: dead}})
		assert.Equal(t, "3", y.depths("q"), "a crash before finds them")
		require.NoError(t, y.b.Close())
	})
}

// edit changes the definitions in a directory that nobody has open.
func edit(t *testing.T, dir string, changes ...store.Definition) (left []string) {
	t.Helper()
	s, r, err := store.Open(store.Options{Dir: dir, SegmentBytes: 1 << 18})
	require.NoError(t, err)
	s.Define(changes...)
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())
	for _, d := range r.Definitions {
		left = append(left, d.Key)
	}
	return left
}

// TestMessagesWithoutADefinition: they come back in a queue of another name, which says so,
// whole, and stay there over restarts until somebody deletes it.
func TestMessagesWithoutADefinition(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	x := openTestBroker(t, o)
	lost := []*broker.Queue{x.durable("q", nil), x.durable("p", amqp.Table{"x-max-priority": int32(5)}), x.durable("empty", nil)}
	for i, key := range []string{"q", "q", "p", "p"} {
		p := amqp.Properties{DeliveryMode: 2, Priority: uint8(i), Expiration: "60000"}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte(key), Properties: p.Append(nil), Body: []byte(key)})
		require.NoError(t, err)
	}
	x.p.Flush(nil)
	require.NoError(t, x.b.Close())
	edit(t, o.Store.Dir, store.Definition{Key: `queue "/" "q"`}, store.Definition{Key: `queue "/" "p"`}, store.Definition{Key: `queue "/" "empty"`})

	names := []string{}
	for _, q := range lost {
		names = append(names, fmt.Sprint(broker.RecoveredPrefix, q.ID))
	}
	for range 2 {
		x = openTestBroker(t, o)
		require.Equal(t, 2, x.b.Adopted())
		require.Equal(t, "2 2", x.depths(names[0], names[1]))
		require.Len(t, x.vh.Queues.List(), 2)
		for i := range 2 {
			q, err := x.vh.Queues.Get(names[i])
			require.NoError(t, err)
			require.True(t, q.Info().Recovered)
			require.True(t, q.Info().Durable)
		}
		require.Empty(t, x.deadlines(), "nobody knows where they would have gone")
		require.NoError(t, x.b.Close())
	}
	x = openTestBroker(t, o)
	for i := range 2 {
		q, err := x.vh.Queues.Get(names[i])
		require.NoError(t, err)
		assert.Len(t, x.drain(q), 2)
		_, err = x.vh.Queues.Delete(nil, names[i], broker.QueueDeletion{})
		require.NoError(t, err)
	}
	require.Zero(t, x.b.Adopted())
	x = restarted(t, o, x.b)
	require.Empty(t, x.vh.Queues.List())
	require.NoError(t, x.b.Close())
}

// TestMessagesOfADeletedQueueStayGone: also where the crash came before the journal said
// so. The note that it was deleted does not stay.
func TestMessagesOfADeletedQueueStayGone(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	x := openTestBroker(t, o)
	q := x.durable("q", nil)
	x.persistent("q", "gone")
	require.NoError(t, x.b.Close())
	note := fmt.Sprintf("deleted \"%d\"", q.ID)
	edit(t, o.Store.Dir, store.Definition{Key: `queue "/" "q"`}, store.Definition{Key: note, Value: []byte("true")})
	x = openTestBroker(t, o)
	require.Zero(t, x.b.Adopted())
	require.Zero(t, x.b.Recovered())
	require.Empty(t, x.vh.Queues.List())
	x.commit()
	x.durable("next", nil)
	require.NoError(t, x.b.Close())
	require.NotContains(t, strings.Join(edit(t, o.Store.Dir), "\n"), "deleted")
}

// TestDeletingLeavesNothing: wherever a queue goes with its messages, a crash afterwards
// finds neither, nor in the end the note that it went.
func TestDeletingLeavesNothing(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	x := openTestBroker(t, o)
	vh, _, err := x.b.PutVHost("", "v", broker.VHostMetadata{})
	require.NoError(t, err)
	for _, remove := range []func() error{
		func() error { _, err := vh.Queues.Delete(nil, "q", broker.QueueDeletion{}); return err },
		func() error { return x.b.DeleteVHost("v") },
	} {
		_, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
		require.NoError(t, err)
		p := vh.OwnPublisher()
		for range 5 {
			m := amqp.Properties{DeliveryMode: 2}
			routed, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: m.Append(nil)})
			require.NoError(t, err)
			require.True(t, routed)
			p.Flush(nil)
		}
		require.NoError(t, remove())
		y := killed(t, o)
		assert.Zero(t, y.b.Adopted())
		assert.Zero(t, y.b.Recovered())
	}
	x.commit()
	x.durable("next", nil)
	require.NoError(t, x.b.Close())
	require.NotContains(t, strings.Join(edit(t, o.Store.Dir), "\n"), "deleted")
}
