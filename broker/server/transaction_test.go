package server_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/server"
)

// transactional opens a channel in transaction mode, with queue q.
func (x *site) transactional() *amqp091.Channel {
	x.t.Helper()
	ch := x.channel(x.connect())
	x.queue(ch, "q", nil)
	require.NoError(x.t, ch.Tx())
	return ch
}

// ready returns how many messages of a queue are ready, as another channel sees it.
func (x *site) ready(queue string) int {
	x.t.Helper()
	synctest.Wait()
	vh, _ := x.b.VHost("/")
	q, err := vh.Queues.Get(queue)
	require.NoError(x.t, err)
	ready, _, _ := q.Messages.Counts()
	return ready
}

func (x *site) unacked(queue string) int {
	x.t.Helper()
	synctest.Wait()
	vh, _ := x.b.VHost("/")
	q, err := vh.Queues.Get(queue)
	require.NoError(x.t, err)
	_, unacked, _ := q.Messages.Counts()
	return unacked
}

func TestCommitPublishes(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		x.publish(ch, "q", "a", "b")
		assert.Zero(t, x.ready("q"), "nothing before the commit")
		require.NoError(t, ch.TxCommit())
		assert.Equal(t, 2, x.ready("q"))
		x.publish(ch, "q", "c")
		require.NoError(t, ch.TxRollback())
		require.NoError(t, ch.TxCommit())
		assert.Equal(t, 2, x.ready("q"), "c is forgotten")
	})
}

func TestTimeToLiveCountsFromTheCommit(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Expiration: "1000"}))
		time.Sleep(time.Minute)
		require.NoError(t, ch.TxCommit())
		time.Sleep(999 * time.Millisecond)
		_, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		assert.True(t, ok)
	})
}

func TestCommitSettles(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		x.publish(ch, "q", "0", "1", "2", "3")
		require.NoError(t, ch.TxCommit())
		require.NoError(t, ch.Qos(3, 0, false))
		d := x.consume(ch, "q", false)
		got := x.settled(d)
		require.Equal(t, []string{"0", "1", "2"}, bodies(got))
		require.NoError(t, got[0].Ack(false))
		require.NoError(t, got[1].Reject(true))
		require.NoError(t, got[2].Nack(true, false))
		assert.Equal(t, 3, x.unacked("q"), "held until the commit")
		assert.Empty(t, x.settled(d), "and in the way of others")
		require.NoError(t, ch.TxCommit())
		assert.Equal(t, []string{"3", "1"}, bodies(x.settled(d)), "in the order of settling: the ack made room, then 1 came back")
		assert.Equal(t, 2, x.unacked("q"))
	})
}

func TestRollbackHoldsWhatWasSettled(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		x.publish(ch, "q", "0", "1")
		require.NoError(t, ch.TxCommit())
		d := x.consume(ch, "q", false)
		got := x.settled(d)
		require.NoError(t, got[1].Ack(true))
		require.NoError(t, ch.TxRollback())
		assert.Empty(t, x.settled(d), "not delivered again")
		assert.Equal(t, 2, x.unacked("q"))
		require.NoError(t, got[0].Ack(false))
		require.NoError(t, got[1].Ack(false))
		require.NoError(t, ch.TxCommit())
		assert.Zero(t, x.unacked("q"))
	})
}

func TestClosingRollsBack(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		x.publish(ch, "q", "0")
		require.NoError(t, ch.TxCommit())
		d, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, d.Ack(false))
		x.publish(ch, "q", "1")
		require.NoError(t, ch.Close())
		assert.Equal(t, 1, x.ready("q"), "0 is back, 1 never was")
	})
}

func TestSettlingTwiceInATransaction(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		x.publish(ch, "q", "0")
		require.NoError(t, ch.TxCommit())
		d, _, err := ch.Get("q", false)
		require.NoError(t, err)
		require.NoError(t, d.Ack(false))
		closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
		require.NoError(t, d.Ack(false))
		assert.Equal(t, "PRECONDITION_FAILED - unknown delivery tag 1", (<-closed).Reason)
		assert.Equal(t, 1, x.ready("q"))
	})
}

func TestMandatoryIsReturnedAtTheCommit(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		returns := ch.NotifyReturn(make(chan amqp091.Return, 2))
		require.NoError(t, ch.Publish("", "nowhere", true, false, amqp091.Publishing{Body: []byte("a")}))
		synctest.Wait()
		assert.Empty(t, returns)
		require.NoError(t, ch.TxCommit())
		r := <-returns
		assert.Equal(t, "nowhere", r.RoutingKey)
		assert.Equal(t, "a", string(r.Body))
		require.NoError(t, ch.Publish("", "nowhere", true, false, amqp091.Publishing{}))
		require.NoError(t, ch.TxRollback())
		require.NoError(t, ch.TxCommit())
		assert.Empty(t, returns)
	})
}

func TestTransactionIsBounded(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
		body := bytes.Repeat([]byte("x"), 8<<20)
		for range 33 {
			ch.Publish("", "q", false, false, amqp091.Publishing{Body: body})
		}
		assert.Equal(t, "PRECONDITION_FAILED - transaction is larger than 65536 messages or 268435456 bytes; commit more often", (<-closed).Reason)
		assert.Zero(t, x.ready("q"))
	})
}

func TestRefusedPublishInATransaction(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", amqp091.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
		require.NoError(t, ch.Tx())
		x.publish(ch, "q", "0", "1")
		err := ch.TxCommit()
		require.Error(t, err)
		assert.Contains(t, err.Error(), "PRECONDITION_FAILED - partial tx completion")
		assert.Equal(t, 1, x.ready("q"), "what was taken stays")
	})
}

// lockedInTx delivers one message of a queue with x-lock-duration 1 s in a transaction.
func (x *site) lockedInTx() (*amqp091.Channel, amqp091.Delivery) {
	x.t.Helper()
	ch := x.channel(x.connect())
	x.queue(ch, "q", nil)
	x.queue(ch, "locks", amqp091.Table{"x-lock-duration": int32(1000)})
	x.publish(ch, "locks", "m")
	require.NoError(x.t, ch.Tx())
	d, ok, err := ch.Get("locks", false)
	require.NoError(x.t, err)
	require.True(x.t, ok)
	return ch, d
}

func TestLockLapsesBeforeTheCommit(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch, d := x.lockedInTx()
		x.publish(ch, "q", "answer")
		require.NoError(t, d.Ack(false))
		time.Sleep(2 * time.Second)
		assert.Equal(t, 1, x.ready("locks"), "an ack that is not committed does not hold it")
		err := ch.TxCommit()
		require.Error(t, err)
		assert.Contains(t, err.Error(), "the lock on delivery tag 1 has lapsed")
		assert.Zero(t, x.ready("q"), "nothing of the transaction")
		assert.Equal(t, 1, x.ready("locks"))
	})
}

func TestLockLapsesBeforeARollback(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch, d := x.lockedInTx()
		closes := ch.NotifyClose(make(chan *amqp091.Error, 1))
		require.NoError(t, d.Ack(false))
		time.Sleep(2 * time.Second)
		require.NoError(t, ch.TxRollback())
		assert.Equal(t, 1, x.ready("locks"))
		require.NoError(t, d.Ack(false))
		assert.Contains(t, closed(closes), "the lock on delivery tag 1 has lapsed")
	})
}

func TestLockHoldsUntilTheCommit(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch, d := x.lockedInTx()
		require.NoError(t, d.Ack(false))
		require.NoError(t, ch.TxCommit())
		time.Sleep(2 * time.Second)
		assert.Zero(t, x.ready("locks"))
	})
}

func TestRequestInATransactionActsAtOnce(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch, other := x.channel(c), x.channel(c)
		x.queue(ch, "q", amqp091.Table{"x-lock-duration": int32(1000), "x-delivery-deadline": true})
		x.queue(ch, "answers", nil)
		x.publish(ch, "q", "m")
		got, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, other.Tx())
		time.Sleep(900 * time.Millisecond)
		require.NoError(t, other.Publish("", broker.LockQueue, false, false,
			amqp091.Publishing{ReplyTo: "answers", Body: []byte(got.Headers["x-lock-token"].(string))}))
		time.Sleep(900 * time.Millisecond)
		require.NoError(t, got.Ack(false), "locked still")
		assert.Zero(t, x.ready("answers"))
		require.NoError(t, other.TxCommit())
		assert.Equal(t, 1, x.ready("answers"))
	})
}

func TestQueueIsDeletedBeforeTheCommit(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		returns := ch.NotifyReturn(make(chan amqp091.Return, 4))
		for _, body := range []string{"a", "b"} {
			require.NoError(t, ch.Publish("", "q", body == "a", false, amqp091.Publishing{Body: []byte(body)}))
		}
		_, err := ch.QueueDelete("q", false, false, false)
		require.NoError(t, err)
		require.NoError(t, ch.TxCommit())
		r := <-returns
		assert.Equal(t, "q a", r.RoutingKey+" "+string(r.Body))
		assert.Empty(t, returns, "b is not mandatory")
	})
}

func TestQueueIsDeclaredAgainBeforeTheCommit(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.transactional()
		returns := ch.NotifyReturn(make(chan amqp091.Return, 4))
		require.NoError(t, ch.Publish("", "q", true, false, amqp091.Publishing{Body: []byte("a"), DeliveryMode: 2}))
		_, err := ch.QueueDelete("q", false, false, false)
		require.NoError(t, err)
		_, err = ch.QueueDeclare("q", true, false, false, false, nil)
		require.NoError(t, err)
		require.NoError(t, ch.TxCommit())
		assert.Empty(t, returns)
		d, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, "a", string(d.Body))
	})
}
