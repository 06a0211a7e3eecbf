package broker_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// locker is a taker that can be asked whether it holds a message.
type locker struct {
	taker
	lost []queue.Seq
}

func (k *locker) Lapsed(_ uint64, seq queue.Seq) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, held := range k.held {
		if held == seq {
			k.lost = append(k.lost, seq)
			return true
		}
	}
	return false
}

// put gives k back what was taken.
func (k *locker) put(seqs ...queue.Seq) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = append(k.held, seqs...)
}

func (k *locker) losses() []queue.Seq {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lost)
}

func (x *testBroker) locker(q *broker.Queue, prefetch int) *locker {
	k := &locker{taker: taker{prefetch: prefetch}}
	k.c.Sink = k
	require.NoError(x.t, q.Messages.Consume(&k.c))
	k.c.Wake()
	return k
}

func TestLocksLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.quorum("q", amqp.Table{"x-lock-duration": int32(1000)})
		slow := x.locker(q, 3)
		x.publishAll("q", 3)
		require.Equal(t, []string{"0", "1", "2"}, slow.bodies())
		fast := x.locker(q, 5)
		time.Sleep(999 * time.Millisecond)
		held := slow.take()
		slow.put(held...)
		q.Messages.Settle(broker.Ack, held[1:2], &slow.c)
		synctest.Wait()
		assert.Empty(t, fast.bodies(), "never early")

		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Equal(t, []string{"0", "2"}, fast.bodies(), "the others, in order and on time")
		assert.Equal(t, []queue.Seq{held[0], held[2]}, slow.losses())
		assert.Len(t, slow.bodies(), 3, "who lost them has no credit for them")

		fast.settle(broker.Requeue)
		assert.Equal(t, []string{"0", "2", "0", "2"}, fast.bodies(), "a message that came back has a lock of its own")
		time.Sleep(500 * time.Millisecond)
		fast.settle(broker.Ack)
		time.Sleep(time.Hour)
		synctest.Wait()
		ready, unacked, _ := q.Messages.Counts()
		assert.Zero(t, ready+unacked, "nothing comes back after its ack")
	})
}

// A settlement that was taken from the holder and has not come to the
// queue yet counts, whatever the time.
func TestLockYieldsToASettlementOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", amqp.Table{"x-lock-duration": int32(1000)})
		k := x.locker(q, 1)
		x.publishAll("q", 1)
		held := k.take()
		time.Sleep(time.Minute)
		synctest.Wait()
		_, unacked, _ := q.Messages.Counts()
		assert.Equal(t, 1, unacked)
		q.Messages.Settle(broker.Ack, held, &k.c)
		ready, unacked, _ := q.Messages.Counts()
		assert.Zero(t, ready+unacked)
	})
}

func TestLapsedMessageExpiresAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		dlq := x.queue("dlq", nil)
		q := x.queue("q", amqp.Table{"x-lock-duration": int32(1000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		x.locker(q, 1)
		x.publish("", "q", "m", "500", nil)
		time.Sleep(time.Second)
		synctest.Wait()
		m, ok := x.get(dlq, true)
		require.True(t, ok)
		assert.Equal(t, "expired", m.properties.Headers["x-first-death-reason"])
	})
}

func TestLockOfAGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.quorum("q", amqp.Table{"x-lock-duration": int32(1000)})
		x.publishAll("q", 1)
		m, _ := x.get(q, false)
		assert.Equal(t, int64(0), m.properties.Headers["x-delivery-count"])
		time.Sleep(time.Hour)
		synctest.Wait()
		m, ok := x.get(q, false)
		require.True(t, ok)
		assert.Equal(t, int64(1), m.properties.Headers["x-delivery-count"], "it lapsed once, and that counts")
	})
}

func TestLockDurationOfAPolicy(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q, short := x.queue("q", nil), x.queue("q.short", amqp.Table{"x-lock-duration": int32(500)})
		for _, body := range []string{"1", "2", "3", "4"} {
			x.publish("", "q", body, "", nil)
		}
		x.publish("", "q.short", "1", "", nil)
		unacked := func(q *broker.Queue) int {
			_, n, _ := q.Messages.Counts()
			return n
		}
		x.get(q, false)
		x.govern(policy.Definition{"lock-duration": int64(60_000)})
		x.get(q, false)
		x.get(short, false)
		after(501 * time.Millisecond)
		assert.Zero(t, unacked(short), "the lower of two")
		assert.Equal(t, 2, unacked(q))
		x.govern(policy.Definition{"lock-duration": int64(1000)})
		x.get(q, false)
		after(1001 * time.Millisecond)
		assert.Equal(t, 2, unacked(q), "the shorter lock lapses before the older one")
		m, _ := x.get(q, false)
		require.Equal(t, "3", m.body)
		x.clear("p")
		after(1001 * time.Millisecond)
		assert.Equal(t, 2, unacked(q), "a lock that was given stays one")
		after(time.Minute)
		assert.Equal(t, 1, unacked(q), "that of before the policy is none")
		for range 3 {
			x.get(q, false)
		}
		after(time.Hour)
		assert.Equal(t, 4, unacked(q), "no policy, no lock")
	})
}

// TestSettledLocksAreForgotten, though the policy that made them has gone.
func TestSettledLocksAreForgotten(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		x.govern(policy.Definition{"lock-duration": int64(1000)})
		x.publish("", "q", "m", "", nil)
		m, _ := x.get(q, false)
		x.clear("p")
		q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
		_, ok := x.get(q, false)
		require.True(t, ok)
		after(time.Hour)
		_, unacked, _ := q.Messages.Counts()
		assert.Equal(t, 1, unacked)
	})
}

// shown are the arguments of a queue whose deliveries have lock tokens.
var shown = amqp.Table{"x-lock-duration": int32(1000), "x-delivery-deadline": true, "x-max-delivery-count": int32(2), "x-dead-letter-queue": true}

func tokenOf(m message) string {
	token, _ := m.properties.Headers["x-lock-token"].(string)
	return token
}

// TestTakeLock: whoever has the token settles a delivery, once, while the lock lasts; its holder loses it.
func TestTakeLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", shown)
		x.publishAll("q", 2)
		first, _ := x.get(q, false)
		second, _ := x.get(q, false)
		_, _, ok := x.queue("other", shown).Messages.Locks.Take(tokenOf(first))
		assert.False(t, ok)
		seq, c, ok := q.Messages.Locks.Take(tokenOf(first))
		require.True(t, ok)
		assert.Equal(t, first.seq, seq)
		_, _, ok = q.Messages.Locks.Take(tokenOf(first))
		assert.False(t, ok, "it is taken")
		time.Sleep(time.Second)
		synctest.Wait()
		ready, unacked, _ := q.Messages.Counts()
		assert.Equal(t, []int{1, 1}, []int{ready, unacked}, "what was taken has no lock that lapses")
		_, _, ok = q.Messages.Locks.Take(tokenOf(second))
		assert.False(t, ok, "it has lapsed")
		q.Messages.SettleFor(broker.Reject, []queue.Seq{seq}, c, &broker.Rejection{Reason: "why", Properties: amqp.Table{"k": "v"}})
		dead, ok := x.get(x.called("q/$deadletterqueue"), true)
		require.True(t, ok)
		assert.Equal(t, "why", dead.properties.Headers["DeadLetterReason"])
		assert.Equal(t, "v", dead.properties.Headers["k"])
		assert.NotContains(t, dead.properties.Headers, "DeadLetterErrorDescription")
	})
}

// TestKeepLocks: what a holder leaves behind comes back when its lock lapses, and at once without a lock.
func TestKeepLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q, plain := x.queue("q", shown), x.queue("plain", nil)
		x.publishAll("q", 1)
		x.publishAll("plain", 1)
		k, p := x.locker(q, 1), x.locker(plain, 1)
		plain.Messages.Locks.Keep(p.take(), nil)
		ready, _, _ := plain.Messages.Counts()
		assert.Equal(t, 1, ready)
		q.Messages.Locks.Keep(k.take(), &k.c)
		k.c.Cancel()
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		_, ok := x.get(q, true)
		assert.False(t, ok)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		m, ok := x.get(q, true)
		assert.True(t, ok)
		assert.True(t, m.redelivery)
		assert.Empty(t, k.losses())
	})
}

// TestRelease: a message that was not tried comes back without a failed delivery.
func TestRelease(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", shown)
	x.publishAll("q", 1)
	for range 5 {
		m, ok := x.get(q, false)
		require.True(t, ok)
		q.Messages.Settle(broker.Release, []queue.Seq{m.seq}, nil)
	}
	ready, _, _ := q.Messages.Counts()
	assert.Equal(t, 1, ready)
}

// TestReceive: a message is taken by its number, wherever it is, unless it is held or has expired.
func TestReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", shown)
		x.publishAll("q", 2)
		x.publish("", "q", "short", "10", nil)
		page, err := q.Messages.Browse(broker.Browse{Count: 3})
		require.NoError(t, err)
		require.Len(t, page, 3)
		body := ""
		take := func(i int, noAck bool) bool {
			return q.Messages.Receive(page[i].Seq, noAck, func(d *broker.Delivery) { body = string(d.Message.Body) })
		}
		assert.True(t, take(1, false))
		assert.Equal(t, "1", body)
		assert.False(t, take(1, false), "it is held")
		time.Sleep(10 * time.Millisecond)
		assert.False(t, take(2, false), "it has expired")
		assert.True(t, take(0, true))
		assert.False(t, take(0, true), "it is gone")
		time.Sleep(time.Second)
		synctest.Wait()
		m, ok := x.get(q, true)
		assert.True(t, ok, "its lock has lapsed")
		assert.Equal(t, "1", m.body)
	})
}
