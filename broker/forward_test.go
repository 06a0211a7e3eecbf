package broker_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// fan declares n queues with these arguments whose dead letters go to all of them.
func (x *testBroker) fan(n int, args amqp.Table) (queues []*broker.Queue) {
	args["x-dead-letter-exchange"] = "amq.fanout"
	for i := range n {
		name := fmt.Sprint("fan", i)
		queues = append(queues, x.queue(name, args))
		require.NoError(x.t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
	}
	return queues
}

func (x *testBroker) forwarded() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(x.t, x.b.Forwarded(ctx))
}

// undeliverable is the queue of parked messages.
func (x *testBroker) undeliverable() *broker.Queue {
	q, err := x.vh.Queues.Get(policy.UndeliverableQueue)
	require.NoError(x.t, err)
	return q
}

// One message whose dead letters go to eleven queues that keep none would become forty million:
// it is parked when it has become some thousand.
func TestCopiesOfADeadLetterAreBounded(t *testing.T) {
	for name, args := range map[string]amqp.Table{
		"dropped": {"x-max-length": int32(0)}, "expired": {"x-message-ttl": int32(0)},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestBroker(t, broker.Options{})
			x.fan(12, args)
			x.publish("", "fan0", "m", "", nil)
			x.forwarded()
			park := x.undeliverable()
			ready, _, _ := park.Messages.Counts()
			assert.Equal(t, 11*10*9, ready, "the fourth death would have made too many")
			m, ok := x.get(park, true)
			require.True(t, ok)
			assert.EqualValues(t, 11*10*9, m.properties.Headers["x-dead-letter-copies"])
			assert.Len(t, m.properties.Headers["x-death"], 4)
		})
	}
}

func TestDeathsWithoutARejectionAreBounded(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	chain := func(i int) amqp.Table {
		return amqp.Table{"x-message-ttl": int32(0), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": fmt.Sprint("q", i+1)}
	}
	const most = 64 // a ladder of queues as Celery declares it has up to 28
	for i := range most + 4 {
		x.queue(fmt.Sprint("q", i), chain(i))
	}
	x.publish("", "q0", "m", "", nil)
	x.forwarded()
	m, ok := x.get(x.undeliverable(), true)
	require.True(t, ok)
	assert.Len(t, m.properties.Headers["x-death"], most+1)
	assert.Equal(t, fmt.Sprint("q", most), m.properties.Headers["x-last-death-queue"])

	_, err := x.vh.Queues.Delete(nil, "q8", broker.QueueDeletion{})
	require.NoError(t, err)
	q := x.queue("q8", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q9"})
	x.queue(fmt.Sprint("q", most+4), nil)
	x.publish("", "q0", "m", "", nil)
	x.forwarded()
	m, ok = x.get(q, false)
	require.True(t, ok)
	q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	x.forwarded()
	end, err := x.vh.Queues.Get(fmt.Sprint("q", most+4))
	require.NoError(t, err)
	assert.Equal(t, []string{"m"}, x.drain(end), "a rejection starts the count again")
}

// The dead letters of one virtual host, of which each goes to thousands of queues, and
// those of another take turns.
func TestVirtualHostsTakeTurns(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	const wide, letters = 10_000, 20
	for i := range wide {
		name := fmt.Sprint("t", i)
		x.queue(name, nil)
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
	}
	x.queue("source", amqp.Table{"x-dead-letter-exchange": "amq.fanout"})
	for range letters {
		x.publish("", "source", "m", "1", nil)
	}
	other, _, err := x.b.PutVHost("", "other", broker.VHostMetadata{})
	require.NoError(t, err)
	y := &testBroker{t: t, b: x.b, vh: other, p: other.OwnPublisher()}
	y.queue("q", deadLettersToDLQ)
	y.queue("dlq", nil)
	y.publish("", "q", "mine", "1", nil)
	refs := x.deadlines()
	var mine []deadline.Ref
	for i, ref := range refs {
		if vh, _, _ := x.b.Deadlines().QueueName(ref.Queue); vh == "other" {
			mine = append(mine, ref)
			refs = append(refs[:i], refs[i+1:]...)
			break
		}
	}
	require.Eventually(t, func() bool { return x.b.Now() > refs[letters-1].Deadline+1000 }, time.Minute, time.Millisecond)

	var mu sync.Mutex
	var order []string
	x.b.Deadlines().Expiries().Subscribe(deadline.Basic, func(batch []deadline.Expiry) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range batch {
			order = append(order, e.VHost)
		}
	})
	x.b.Deadlines().Expire(refs, deadline.Eager, true, nil)
	x.b.Deadlines().Expire(mine, deadline.Eager, true, nil)
	x.forwarded()
	require.Len(t, order, letters+1)
	assert.Contains(t, order[:2], "other", "it waits for one turn at the most, of some forty")
	last, err := x.vh.Queues.Get(fmt.Sprint("t", wide-1))
	require.NoError(t, err)
	assert.Len(t, x.drain(last), letters)
	source, err := x.vh.Queues.Get("source")
	require.NoError(t, err)
	ready, _, _ := source.Messages.Counts()
	assert.Zero(t, ready+source.Messages.Letters.Count())
}

// The dead letters of one virtual host arrive while a letter of another one's is still on its way, however long that takes.
func TestLettersWaitForNoOtherVirtualHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		other, _, err := x.b.PutVHost("", "other", broker.VHostMetadata{})
		require.NoError(t, err)
		y := &testBroker{t: t, b: x.b, vh: other, p: other.OwnPublisher()}
		arrived := make(chan struct{})
		arrive := sync.OnceFunc(func() { close(arrived) })
		x.b.Deadlines().Expiries().Subscribe(deadline.Basic, func(batch []deadline.Expiry) {
			if batch[0].VHost == "other" {
				arrive()
			} else {
				<-arrived
			}
		})
		for _, one := range []*testBroker{x, y} {
			one.queue("q", deadLettersToDLQ)
			one.queue("dlq", nil)
			one.publish("", "q", "m", "1", nil)
		}
		refs := x.deadlines()
		require.Len(t, refs, 2)
		time.Sleep(time.Second)
		for _, vhost := range []string{"/", "other"} {
			for _, ref := range refs {
				if of, _, _ := x.b.Deadlines().QueueName(ref.Queue); of == vhost {
					x.b.Deadlines().Expire([]deadline.Ref{ref}, deadline.Eager, true, nil)
					synctest.Wait()
				}
			}
		}
		select {
		case <-arrived:
		default:
			t.Error("it waits")
			arrive()
		}
		x.forwarded()
	})
}

// A process that is killed while letters wait and one is in some of its targets: none is lost, and
// none stands anywhere twice.
func TestLettersUnderWayAreOnceAfterACrash(t *testing.T) {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	stopping := o
	stopping.Expiries = new(deadline.Stream)
	stopping.Expiries.Subscribe(deadline.WithMessage, func([]deadline.Expiry) {
		once.Do(func() {
			close(arrived)
			<-goOn
		})
	})
	x := openTestBroker(t, stopping)
	const wide, letters = 9_000, 8 // each takes more than two turns
	for i := range wide {
		name := fmt.Sprint("t", i)
		x.queue(name, nil)
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
	}
	x.durable("kept", nil)
	require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: "kept"}))
	source := x.durable("source", amqp.Table{"x-dead-letter-exchange": "amq.fanout"})
	for i := range letters {
		x.publishPersistent("", "source", fmt.Sprint(i), "1")
	}
	refs := x.deadlines()
	require.Eventually(t, func() bool { return x.b.Now() > refs[letters-1].Deadline }, time.Minute, time.Millisecond)
	x.b.Deadlines().Expire(refs, deadline.Eager, true, nil)
	<-arrived
	assert.Equal(t, letters-1, source.Messages.Letters.Count(), "the first has arrived, the second is on its way")
	x.commit()
	crashed := o
	crashed.Store.Dir = broker.CopyOfRunning(t, o.Store.Dir)
	close(goOn)
	for _, y := range []*testBroker{openTestBroker(t, crashed), restarted(t, o, x.b)} {
		y.expire(y.deadlines())
		kept, err := y.vh.Queues.Get("kept")
		require.NoError(t, err)
		assert.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, y.drain(kept))
		source, err := y.vh.Queues.Get("source")
		require.NoError(t, err)
		ready, _, _ := source.Messages.Counts()
		assert.Zero(t, ready)
		require.NoError(t, y.b.Close())
	}
}

// While memory is low, letters that would take much of it wait in line; others go on.
func TestWideLettersWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		x := newTestBroker(t, broker.Options{MemoryLimit: 10, MemoryInUse: used.Load})
		for i := range 17 {
			x.queue(fmt.Sprint("t", i), nil)
			require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: fmt.Sprint("t", i)}))
		}
		wide, narrow, dlq := x.queue("wide", amqp.Table{"x-dead-letter-exchange": "amq.fanout"}), x.queue("narrow", deadLettersToDLQ), x.queue("dlq", nil)
		x.publish("", "wide", "w", "10", nil)
		x.publish("", "narrow", "n", "10", nil)
		used.Store(11)
		time.Sleep(2 * time.Second)
		x.b.Deadlines().Expire(x.deadlines(), deadline.Eager, true, nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"n"}, x.drain(dlq))
		assert.Equal(t, 1, wide.Messages.Letters.Count())
		assert.Zero(t, narrow.Messages.Letters.Count())
		used.Store(1)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Zero(t, wide.Messages.Letters.Count())
		first, err := x.vh.Queues.Get("t0")
		require.NoError(t, err)
		assert.Equal(t, []string{"w"}, x.drain(first))
	})
}

// A delayed message that no queue is bound for when it is due is not lost without a word.
func TestDelayedMessageWithoutAQueueIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		told := x.watched()
		q := x.queue("q", nil)
		x.publish("", "q", "m", "", amqp.Table{"x-delay": int32(1000)})
		_, err := x.vh.Queues.Delete(nil, q.Name, broker.QueueDeletion{})
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		m, ok := x.get(x.undeliverable(), true)
		require.True(t, ok)
		assert.Equal(t, "m", m.body)
		assert.Equal(t, "unroutable", m.properties.Headers["x-first-death-reason"])
		deaths := m.properties.Headers["x-death"].([]any)
		require.Len(t, deaths, 1)
		assert.Equal(t, []any{"q"}, deaths[0].(amqp.Table)["routing-keys"])
		expiries := told.take()
		require.Len(t, expiries, 1)
		assert.Equal(t, deadline.Scheduled, expiries[0].Path)
		assert.Equal(t, deadline.Parked, expiries[0].Action)
	})
}

// Whoever causes more dead letters than may wait moves some of them: what waits is bounded
// however fast they come.
func TestCausesOfManyLettersMoveThem(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("drops", amqp.Table{"x-max-length": int32(0), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	x.queue("dlq", amqp.Table{"x-max-length": int32(10)})
	q, err := x.vh.Queues.Get("drops")
	require.NoError(t, err)
	m := &broker.Publication{RoutingKey: []byte("drops"), Properties: (&amqp.Properties{}).Append(nil), Body: []byte("m")}
	most, gaveUp := 0, 0 // whoever waits for 100 ms in vain gives up: so long has a machine that does other work no processor at times
	for range 100 {
		for range 4000 {
			_, err := x.p.Add(m)
			require.NoError(t, err)
		}
		began := time.Now()
		x.p.Flush(nil)
		waiting := q.Messages.Letters.Count()
		if waiting > 1<<16 && time.Since(began) > 90*time.Millisecond {
			gaveUp++
		}
		most = max(most, waiting)
	}
	assert.LessOrEqual(t, most, 1<<16+4000*(1+gaveUp))
	assert.Less(t, most, 200_000)
	x.forwarded()
	assert.Zero(t, q.Messages.Letters.Count())
}

func TestWhatDiesParkedIsNotParkedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		_, err := x.vh.Queues.Declare(nil, policy.UndeliverableQueue, broker.QueueDeclare{
			Durable: true, Args: amqp.Table{"x-message-ttl": int32(0), "x-dead-letter-exchange": "nowhere"},
		})
		assert.EqualValues(t, amqp.AccessRefused, code(err), "its properties are not a client's to choose")
		x.queue("q", amqp.Table{"x-message-ttl": int32(50), "x-dead-letter-exchange": "nowhere"})
		x.publish("", "q", "m", "", nil)
		time.Sleep(time.Second)
		told := x.watched()
		x.expire(x.deadlines())
		assert.Equal(t, deadline.Parked, told.take()[0].Action)
		park, err := x.vh.Queues.Get(policy.UndeliverableQueue)
		require.NoError(t, err)
		assert.Equal(t, []string{"m"}, x.drain(park))
	})
}
