package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

const deadLetters = "q/$deadletterqueue"

func TestDeadLetterQueueOfAQueue(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-dead-letter-queue": true, "x-message-ttl": int32(100)})
		dead, err := x.vh.Queues.Get(deadLetters)
		require.NoError(t, err)
		x.publish("", "q", "expired", "", nil)
		x.publish("", "q", "rejected", "", nil)
		m, _ := x.get(q, false)
		q.Messages.Settle(broker.Ack, []queue.Seq{m.seq}, nil)
		x.publish("", "q", "expired", "", nil)
		m, _ = x.get(q, false)
		q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
		after(time.Second)
		_, ok := x.get(q, true) // the monitor is not there
		require.False(t, ok)

		m, ok = x.get(dead, false)
		require.True(t, ok)
		assert.Equal(t, "rejected", m.body)
		assert.Equal(t, "Rejected", m.properties.Headers["DeadLetterReason"], "AMQP 0-9-1's consumer gives no other")
		assert.Equal(t, "The message was rejected by its consumer.", m.properties.Headers["DeadLetterErrorDescription"])
		assert.Equal(t, "rejected", m.properties.Headers["x-first-death-reason"])
		q2 := m
		m, ok = x.get(dead, true)
		require.True(t, ok)
		assert.Equal(t, "TTLExpiredException", m.properties.Headers["DeadLetterReason"])
		assert.Equal(t, "The message expired and was dead lettered.", m.properties.Headers["DeadLetterErrorDescription"])

		dead.Messages.Settle(broker.Reject, []queue.Seq{q2.seq}, nil)
		x.toolPublish(deadLetters, "sent", "50", amqp.Table{"x-expires-at": time.Now().UnixMilli() + 50})
		assert.Empty(t, x.deadlines())
		after(time.Hour)
		assert.Equal(t, []string{"sent"}, x.drain(dead), "nothing expires there, and what is rejected there is gone")
	})
}

// TestDeadLetterQueueLocks as its queue does, if consumers see that; a lock that lapses takes nothing from it, whatever the policy.
func TestDeadLetterQueueLocks(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.govern(policy.Definition{"max-delivery-count": int64(1)})
		for name, args := range map[string]amqp.Table{"q.unseen": {"x-lock-duration": int32(1000)}, "q.none": {"x-delivery-deadline": true}} {
			args["x-dead-letter-queue"] = true
			x.queue(name, args)
			assert.Zero(t, x.called(name+policy.SubqueueSuffix).Settings().LockMillis, name)
		}
		x.queue("q", shown)
		dead := x.called(deadLetters)
		x.toolPublish(deadLetters, "m", "50", nil)
		for range 5 {
			m, ok := x.get(dead, false)
			require.True(t, ok)
			assert.Equal(t, time.Now().UnixMilli()+1000, m.properties.Headers["x-locked-until"])
			after(time.Second)
		}
		assert.Equal(t, []string{"m"}, x.drain(dead))
	})
}

// toolPublish publishes as imports do.
func (x *testBroker) toolPublish(key, body, expiration string, headers amqp.Table) {
	x.t.Helper()
	x.p.ForTool = true
	defer func() { x.p.ForTool = false }()
	x.publish("", key, body, expiration, headers)
}

func TestNobodyPublishesIntoADeadLetterQueue(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", amqp.Table{"x-dead-letter-queue": true})
	const refused = "ACCESS_REFUSED - queue 'q/$deadletterqueue' in vhost '/' takes the dead letters of queue 'q' and nothing else"
	add := func(key string, headers amqp.Table) error {
		p := amqp.Properties{Headers: headers}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte(key), Properties: p.Append(nil)})
		return err
	}
	for range 2 {
		assert.Equal(t, refused, text(add(deadLetters, nil)))
		assert.Equal(t, refused, text(add("q/$DeadLetterQueue", nil)))
		assert.Equal(t, refused, text(add("q", amqp.Table{"CC": []any{deadLetters}})))
		assert.Equal(t, refused, text(add(deadLetters, amqp.Table{"x-delay": int32(1000)})))
	}
	r := x.b.RightsOf("guest", "/")
	assert.Equal(t, refused, text(r.Bind(x.vh, nil, broker.Binding{Source: "amq.fanout", Destination: deadLetters})))
	assert.Zero(t, x.p.Flush(nil))
	dead, err := x.vh.Queues.Get(deadLetters)
	require.NoError(t, err)
	assert.Zero(t, x.ready(dead))
	for i := range 2000 { // more keys than a publisher keeps
		require.NoError(t, add(fmt.Sprint("key", i), nil))
	}
	assert.Equal(t, refused, text(add(deadLetters, nil)))
	assert.Equal(t, refused, text(add("q/$DEADLETTERQUEUE", nil)))
	assert.NoError(t, add("other/$deadletterqueue", nil), "there is none: it is unroutable")
}

// TestReceiptDoesNotGoIntoADeadLetterQueue: a client has asked for it.
func TestReceiptDoesNotGoIntoADeadLetterQueue(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-dead-letter-queue": true})
		p := amqp.Properties{Expiration: "0", ReplyTo: deadLetters, Headers: amqp.Table{"x-expiry-receipt": true}}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte("m")})
		require.NoError(t, err)
		x.p.Flush(nil)
		after(time.Second)
		dead, err := x.vh.Queues.Get(deadLetters)
		require.NoError(t, err)
		assert.Equal(t, []string{"m"}, x.drain(dead))
		assert.Zero(t, x.ready(q))
	})
}

// TestReasonIsTheBrokers: what a publisher wrote under the names of Service Bus's reason is not believed.
func TestReasonIsTheBrokers(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", amqp.Table{"x-dead-letter-queue": true, "x-max-length": int32(0)})
	x.publish("", "q", "m", "", amqp.Table{"DeadLetterReason": "TTLExpiredException", "DeadLetterErrorDescription": "?"})
	dead, err := x.vh.Queues.Get(deadLetters)
	require.NoError(t, err)
	m, ok := x.get(dead, true)
	require.True(t, ok)
	assert.NotContains(t, m.properties.Headers, "DeadLetterReason")
	assert.NotContains(t, m.properties.Headers, "DeadLetterErrorDescription")
	assert.Equal(t, "maxlen", m.properties.Headers["x-first-death-reason"])
}

func TestDeadLetterQueueIsPassedOverForAnExchange(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	other := x.queue("other", nil)
	q := x.queue("q", amqp.Table{"x-dead-letter-queue": true, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "other"})
	x.publish("", "q", "m", "", nil)
	m, _ := x.get(q, false)
	q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	assert.Equal(t, []string{"m"}, x.drain(other))
}

func TestDeliveriesRunOutInServiceBusWords(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.durable("q", amqp.Table{"x-dead-letter-queue": true, "x-queue-type": "quorum", "x-delivery-limit": int32(2)})
	x.publish("", "q", "m", "", nil)
	for range 3 {
		m, ok := x.get(q, false)
		require.True(t, ok)
		q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
	}
	dead, err := x.vh.Queues.Get(deadLetters)
	require.NoError(t, err)
	m, ok := x.get(dead, true)
	require.True(t, ok)
	assert.Equal(t, "MaxDeliveryCountExceeded", m.properties.Headers["DeadLetterReason"])
	assert.Equal(t, "Message could not be consumed after 3 delivery attempts.", m.properties.Headers["DeadLetterErrorDescription"])
}

func TestDeadLetterQueueGoesWithItsQueue(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", amqp.Table{"x-dead-letter-queue": true})
	_, err := x.vh.Queues.Delete(nil, deadLetters, broker.QueueDeletion{})
	assert.Equal(t, "ACCESS_REFUSED - queue '"+deadLetters+"' in vhost '/' is deleted with queue 'q'", text(err))
	_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	_, err = x.vh.Queues.Get(deadLetters)
	assert.EqualValues(t, 404, code(err))
	_, err = x.vh.Queues.Declare(nil, deadLetters, broker.QueueDeclare{})
	assert.Equal(t, "ACCESS_REFUSED - queue name '"+deadLetters+"' is reserved; declare 'q' with x-dead-letter-queue", text(err))
}

func TestDeadLetterQueueArguments(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-dead-letter-queue": "yes"}})
	assert.Equal(t, "PRECONDITION_FAILED - invalid arg 'x-dead-letter-queue' for queue 'q' in vhost '/': {unacceptable_type,longstr}", text(err))
	long := strings.Repeat("q", 250)
	_, err = x.vh.Queues.Declare(nil, long, broker.QueueDeclare{Args: amqp.Table{"x-dead-letter-queue": true}})
	assert.EqualValues(t, 406, code(err))
	_, err = x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-dead-letter-queue": true, "x-message-ttl": int32(-1)}})
	assert.EqualValues(t, 406, code(err))
	_, err = x.vh.Queues.Get(deadLetters)
	assert.EqualValues(t, 404, code(err), "nothing is left of it")
	x.queue("q", amqp.Table{"x-dead-letter-queue": true})
	x.queue("q", amqp.Table{"x-dead-letter-queue": true})
	_, err = x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	assert.EqualValues(t, 406, code(err), "a redeclare repeats it")
}

func TestDeadLetterQueueOutlivesARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	q := x.durable("q", amqp.Table{"x-dead-letter-queue": true})
	x.publishPersistent("", "q", "m", "")
	m, _ := x.get(q, false)
	q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	x.commit()
	x = restarted(t, o, x.b)
	dead, err := x.vh.Queues.Get(deadLetters)
	require.NoError(t, err)
	x.toolPublish(deadLetters, "sent", "50", nil)
	assert.Empty(t, x.deadlines())
	assert.Equal(t, []string{"m", "sent"}, x.drain(dead))
	_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	_, err = x.vh.Queues.Get(deadLetters)
	assert.EqualValues(t, 404, code(err))
	require.NoError(t, x.b.Close())
}

func TestAutoDeleteOnIdle(t *testing.T) {
	const period = 5 * time.Minute
	inBubble(t, broker.Options{}, func(x *testBroker) {
		there := func(name string) bool {
			_, err := x.vh.Queues.Get(name)
			return err == nil
		}
		args := amqp.Table{"x-auto-delete-on-idle": period.Milliseconds(), "x-dead-letter-queue": true}
		q := x.queue("q", args)
		for name, use := range map[string]func(){
			"send":    func() { x.publish("", "q", "m", "", nil) },
			"receive": func() { x.get(q, true) },
			"update":  func() { x.queue("q", args) },
			"peek": func() {
				_, err := q.Messages.Browse(broker.Browse{Count: 1})
				require.NoError(t, err)
			},
		} {
			after(period - 3*time.Second)
			use()
			after(2 * time.Second)
			require.True(t, there("q"), name)
		}
		c := newSink(t, q, true)
		after(time.Hour)
		require.True(t, there("q"), "a receiver is there")
		c.c.Cancel()
		x.publish("", "q", "protects nothing", "", nil)
		after(period - time.Second)
		require.True(t, there("q"))
		after(2 * time.Second)
		assert.False(t, there("q"))
		assert.False(t, there(deadLetters))
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-auto-delete-on-idle": int32(299_999)}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg 'x-auto-delete-on-idle' for queue 'q' in vhost '/': 299999 is less than CURFEW_IDLE_MINIMUM, which is 300000 ms", text(err))
	})
}

func TestSendsDoNotRenewExpires(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.queue("q", amqp.Table{"x-expires": int32(1000), "x-auto-delete-on-idle": int32(600_000)})
		after(900 * time.Millisecond)
		x.publish("", "q", "m", "", nil)
		after(101 * time.Millisecond)
		_, err := x.vh.Queues.Get("q")
		assert.EqualValues(t, 404, code(err), "whichever comes first")
	})
}

// TestNoPolicyDeletesDeadLetters that nobody has looked at, while their queue is in use.
func TestNoPolicyDeletesDeadLetters(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-dead-letter-queue": true})
		lost := x.queue("lost", amqp.Table{"x-dead-letter-exchange": "nowhere"})
		x.govern(policy.Definition{"expires": int64(60_000)})
		x.publish("", "q", "m", "0", nil)
		x.publish("", "lost", "n", "0", nil)
		after(time.Second)
		x.consume(q, 1, nil)
		x.consume(lost, 1, nil)
		x.expire(x.deadlines())
		after(time.Hour)
		require.True(t, x.exists(deadLetters))
		assert.Equal(t, []string{"m"}, x.drain(x.called(deadLetters)))
		require.True(t, x.exists(policy.UndeliverableQueue))
		assert.Equal(t, []string{"n"}, x.drain(x.undeliverable()))
	})
}

// TestDeadLetterQueueIsFoundInAnyCase of the last part, by what the broker and its tools send there.
func TestDeadLetterQueueIsFoundInAnyCase(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", amqp.Table{"x-dead-letter-queue": true})
	from := x.queue("from", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q/$DeadLetterQueue"})
	x.publish("", "from", "m", "", nil)
	x.rejectAll(from)
	x.toolPublish("q/$DEADLETTERQUEUE", "n", "", nil)
	assert.Equal(t, []string{"m", "n"}, x.drain(x.called(deadLetters)))
}

func TestDeadLetterQueueOfAPolicy(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q, no := x.queue("q", nil), x.queue("q.no", amqp.Table{"x-dead-letter-queue": false})
	other, own := x.queue("other", nil), x.queue("q.own", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "other"})
	x.govern(policy.Definition{"dead-letter-queue": true})
	reject := func(q *broker.Queue, body string) {
		t.Helper()
		x.publish("", q.Name, body, "", nil)
		m, ok := x.get(q, false)
		require.True(t, ok)
		q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	}
	dead, err := x.vh.Queues.Get(deadLetters)
	require.NoError(t, err)
	reject(q, "1")
	assert.Equal(t, 1, x.ready(dead))
	reject(own, "2")
	assert.Equal(t, []string{"2"}, x.drain(other))
	reject(no, "3")
	_, err = x.vh.Queues.Get("q.no/$deadletterqueue")
	assert.EqualValues(t, 404, code(err), "the argument says no")
	later := x.queue("q.later", nil)
	reject(later, "4")
	ofLater, err := x.vh.Queues.Get("q.later/$deadletterqueue")
	require.NoError(t, err, "one that is declared later has it too")
	assert.Equal(t, 1, x.ready(ofLater))
	_, err = x.vh.Queues.Get(deadLetters + "/$deadletterqueue")
	assert.EqualValues(t, 404, code(err), "and a dead-letter queue has none")
	_, err = x.vh.Queues.Delete(nil, deadLetters, broker.QueueDeletion{})
	assert.EqualValues(t, 403, code(err))
	x.queue(strings.Repeat("q", 250), nil) // too long a name for it

	x.govern(policy.Definition{"dead-letter-queue": true, "dead-letter-exchange": "", "dead-letter-routing-key": "other"})
	reject(q, "5")
	assert.Equal(t, []string{"5"}, x.drain(other), "a dead-letter exchange goes before it")

	x.clear("p")
	reject(q, "6")
	assert.Equal(t, []string{"1"}, x.drain(dead), "it stays with what is in it, and gets no more")
	_, err = x.vh.Queues.Delete(nil, "q.later/$deadletterqueue", broker.QueueDeletion{})
	require.NoError(t, err, "it may be deleted by itself now")
	_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	_, err = x.vh.Queues.Get(deadLetters)
	assert.EqualValues(t, 404, code(err), "and goes with its queue")
	_, err = x.vh.Queues.Get(policy.UndeliverableQueue)
	assert.EqualValues(t, 404, code(err), "nothing was parked")
}

// TestParkedMessagesHaveNoDeadLetterQueue, whatever policies say.
func TestParkedMessagesHaveNoDeadLetterQueue(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: ".*", Definition: policy.Definition{"dead-letter-queue": true}})
	_, err := x.vh.Queues.Declare(nil, policy.UndeliverableQueue, broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	assert.Len(t, x.vh.Queues.List(), 1)
}

func TestDeadLetterQueueOfAPolicyOutlivesARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	q := x.durable("q", nil)
	x.govern(policy.Definition{"dead-letter-queue": true})
	x.publishPersistent("", "q", "m", "")
	m, _ := x.get(q, false)
	q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	x.commit()
	x = restarted(t, o, x.b)
	dead, err := x.vh.Queues.Get(deadLetters)
	require.NoError(t, err)
	assert.Equal(t, []string{"m"}, x.drain(dead))
	_, err = x.vh.Queues.Delete(nil, deadLetters, broker.QueueDeletion{})
	assert.EqualValues(t, 403, code(err))
	require.NoError(t, x.b.Close())
}

// TestDeadLetterQueueOfAPolicyIsMadeByAStart, if a crash came between the two.
func TestDeadLetterQueueOfAPolicyIsMadeByAStart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	require.NoError(t, x.vh.SetLimits(access.Limits{access.MaxQueues: 1}))
	x.govern(policy.Definition{"dead-letter-queue": true})
	_, err := x.vh.Queues.Get(deadLetters)
	require.EqualValues(t, 404, code(err), "there was no room for it")
	_, err = x.vh.Queues.Declare(nil, "q2", broker.QueueDeclare{Durable: true})
	require.EqualValues(t, 406, code(err))
	require.NoError(t, x.vh.SetLimits(nil))
	for range 2 {
		x = restarted(t, o, x.b)
		_, err = x.vh.Queues.Get(deadLetters)
		require.NoError(t, err)
		assert.Len(t, x.vh.Queues.List(), 2)
	}
	require.NoError(t, x.b.Close())
}
