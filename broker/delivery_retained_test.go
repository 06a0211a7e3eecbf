package broker_test

import (
	"strings"
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

// atLeastOnce are the arguments of a queue that dead-letters to an exchange, and
// keeps what is not taken there.
func atLeastOnce(dlx string, more amqp.Table) amqp.Table {
	args := amqp.Table{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-dead-letter-exchange": dlx}
	for k, v := range more {
		args[k] = v
	}
	return args
}

func (x *testBroker) rejectAll(q *broker.Queue) {
	for {
		m, ok := x.get(q, false)
		if !ok {
			return
		}
		q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	}
}

var oneMessage = amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}

func TestDeadLetterStaysUntilItsTargetTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		full := x.queue("full", oneMessage)
		q := x.quorum("q", atLeastOnce("", amqp.Table{"x-dead-letter-routing-key": "full"}))
		x.publish("", "full", "in the way", "", nil)
		x.publishAll("q", 3)
		x.rejectAll(q)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 3, q.Messages.Retained.Count(), "refused, and kept")
		ready, unacked, _ := q.Messages.Counts()
		assert.Zero(t, ready+unacked)

		var got []string
		for range 4 {
			m, ok := x.get(full, true)
			require.True(t, ok)
			got = append(got, m.body)
			if m.body != "in the way" {
				assert.Equal(t, "rejected", m.properties.Headers["x-first-death-reason"])
				assert.Len(t, m.properties.Headers["x-death"], 1, "tries are not deaths")
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		assert.ElementsMatch(t, []string{"in the way", "0", "1", "2"}, got, "each once, none lost")
		assert.Zero(t, q.Messages.Retained.Count())
	})
}

// A full target is asked before anything is written for it: dead letters that wait for it for an
// hour leave the disk alone.
func TestNothingIsWrittenForAFullTarget(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, broker.Options{Store: store.Options{Dir: dir}}, func(x *testBroker) {
		full := x.durable("full", oneMessage)
		q := x.quorum("q", atLeastOnce("", amqp.Table{"x-dead-letter-routing-key": "full"}))
		x.publish("", "full", "in the way", "", nil)
		x.publishAll("q", 300)
		x.rejectAll(q)
		assert.Equal(t, 300, q.Messages.Retained.Count())
		x.commit()
		size := func() (n int) {
			for _, content := range written(t, dir) {
				n += len(content)
			}
			return n
		}
		before := size()
		time.Sleep(time.Hour)
		synctest.Wait()
		x.commit()
		assert.Less(t, size()-before, 1000)
		assert.Equal(t, []string{"in the way"}, x.drain(full))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, 299, q.Messages.Retained.Count(), "it takes one as soon as it has room")
	})
}

func TestDeadLetterGoesToEachTargetOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		full, free := x.queue("full", oneMessage), x.queue("free", nil)
		for _, name := range []string{"full", "free"} {
			require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
		}
		q := x.quorum("q", atLeastOnce("amq.fanout", nil))
		x.publish("", "full", "in the way", "", nil)
		x.publish("", "q", "m", "100", nil)
		time.Sleep(time.Second)
		told := x.watched()
		x.expire(x.deadlines())
		assert.Equal(t, deadline.DeadLettered, told.take()[0].Action)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"m"}, x.drain(free), "at once, and once")
		assert.Equal(t, []string{"in the way"}, x.drain(full))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"m"}, x.drain(full))
		assert.Empty(t, x.drain(free))
		assert.Zero(t, q.Messages.Retained.Count())
	})
}

func TestDeadLetterWaitsForItsExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.quorum("q", atLeastOnce("later", amqp.Table{"x-max-length": int32(2)}))
		x.publishAll("q", 2)
		x.rejectAll(q)
		assert.Equal(t, 2, q.Messages.Retained.Count())
		x.publishAll("q", 1)
		ready, _, _ := q.Messages.Counts()
		assert.Zero(t, ready, "they count against the limit")
		_, err := x.vh.Queues.Get(policy.UndeliverableQueue)
		assert.Error(t, err, "nothing is parked")

		dlq := x.queue("dlq", nil)
		require.NoError(t, x.vh.Exchanges.Declare("later", broker.ExchangeDeclare{Kind: "fanout"}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "later", Destination: "dlq"}))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"0", "1"}, x.drain(dlq))
		x.publishAll("q", 1)
		assert.Equal(t, []string{"0"}, x.drain(q))
	})
}

func TestRetainedDeadLettersFollowPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q, full, dlq := x.quorum("q", amqp.Table{}), x.queue("full", oneMessage), x.queue("dlq", nil)
		for _, name := range []string{"full", "dlq"} {
			require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
		}
		to := func(dlx, strategy string) {
			x.govern(policy.Definition{"dead-letter-exchange": dlx, "dead-letter-strategy": strategy, "overflow": "reject-publish"})
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		to("mistyped", "at-least-once")
		x.publishAll("q", 2)
		x.rejectAll(q)
		assert.Equal(t, 2, q.Messages.Retained.Count())
		_, err := x.vh.Policies.Clear(policy.User, "p")
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, 2, q.Messages.Retained.Count(), "a queue that dead-letters no more loses none")

		x.publish("", "full", "in the way", "", nil)
		to("amq.fanout", "at-least-once")
		assert.Equal(t, []string{"0", "1"}, x.drain(dlq))
		assert.Equal(t, 2, q.Messages.Retained.Count(), "one target has them, the other is full")
		to("amq.fanout", "at-most-once")
		assert.Zero(t, q.Messages.Retained.Count())
		assert.Equal(t, []string{"in the way", "0", "1"}, x.drain(full), "now a full queue takes them")
		assert.Empty(t, x.drain(dlq), "where they are, they do not come again")
	})
}

// Twenty thousand dead letters do not wait a second for every few of them.
func TestRetainedFollowAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.quorum("q", atLeastOnce("", amqp.Table{"x-dead-letter-routing-key": "later"}))
		x.publishAll("q", 2000)
		x.rejectAll(q)
		assert.Equal(t, 2000, q.Messages.Retained.Count())
		later := x.queue("later", nil)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		assert.Len(t, x.drain(later), 2000)
	})
}

func TestRetainedDeadLettersOutliveARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 16}}
	x := openTestBroker(t, o)
	x.durable("full", oneMessage)
	busy := x.durable("busy", nil)
	q := x.quorum("q", atLeastOnce("", amqp.Table{"x-dead-letter-routing-key": "full"}))
	x.publishPersistent("", "full", "in the way", "")
	x.publishPersistent("", "q", "m", "")
	x.rejectAll(q)
	assert.Equal(t, 1, q.Messages.Retained.Count())
	for range 300 { // so that the store moves what is left
		x.drain(busy)
		x.publishPersistent("", "busy", strings.Repeat("x", 1000), "")
	}

	x = restarted(t, o, x.b)
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	assert.Equal(t, []string{"m"}, x.drain(q), "it is ready in its queue again")
	require.NoError(t, x.b.Close())
}

func TestRetainedDeadLettersGoWithTheirQueue(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.quorum("q", atLeastOnce("missing", nil))
	x.publishAll("q", 3)
	x.rejectAll(q)
	_, err := x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{IfEmpty: true})
	assert.Equal(t, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty", text(err))
	most := 2
	_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{AtMost: &most})
	assert.Equal(t, "PRECONDITION_FAILED - queue 'q' in vhost '/' has 3 messages and dead letters, more than the 2 that may be deleted", text(err))
	_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	assert.Zero(t, q.Messages.Retained.Count())
}

// TestDeadLettersGoWithTheirQueue: those in the queue beside it count where a deletion is bounded.
func TestDeadLettersGoWithTheirQueue(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", amqp.Table{"x-dead-letter-queue": true})
	x.publishAll("q", 3)
	x.rejectAll(q)
	require.Equal(t, 3, q.DeadLetters())
	_, err := x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{IfEmpty: true})
	assert.Equal(t, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty", text(err))
	most := 2
	_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{AtMost: &most})
	assert.Equal(t, "PRECONDITION_FAILED - queue 'q' in vhost '/' has 3 messages and dead letters, more than the 2 that may be deleted", text(err))
	most = 3
	_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{AtMost: &most})
	require.NoError(t, err)
	require.False(t, x.exists("q"))
}

func TestDefaultStrategyForcesAFullTarget(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	full := x.queue("full", oneMessage)
	q := x.queue("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "full"})
	x.publish("", "full", "first", "", nil)
	x.publishAll("q", 1)
	x.rejectAll(q)
	assert.Equal(t, []string{"first", "0"}, x.drain(full))
}
