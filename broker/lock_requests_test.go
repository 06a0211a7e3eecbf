package broker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// locked declares a queue whose deliveries are locked for a second, and gets its one message.
func (x *testBroker) locked(name string, args amqp.Table) (q *broker.Queue, m message, token string) {
	x.t.Helper()
	args["x-delivery-deadline"], args["x-lock-duration"] = true, int32(1000)
	q = x.queue(name, args)
	x.publish("", name, "m", "", nil)
	m, ok := x.get(q, false)
	require.True(x.t, ok)
	token, _ = m.properties.Headers["x-lock-token"].(string)
	require.NotEmpty(x.t, token)
	return q, m, token
}

// renew publishes a request to renew a lock and returns its answer.
func (x *testBroker) renew(p *broker.Publisher, token string) (answer broker.LockAnswer) {
	x.t.Helper()
	to := x.queue("answers", nil)
	properties := amqp.Properties{ReplyTo: "answers", CorrelationID: "7"}
	routed, err := p.Add(&broker.Publication{RoutingKey: []byte(broker.LockQueue), Properties: properties.Append(nil), Body: []byte(token)})
	require.NoError(x.t, err)
	require.True(x.t, routed)
	p.Flush(nil)
	m, ok := x.get(to, true)
	require.True(x.t, ok)
	assert.Equal(x.t, "7", m.properties.CorrelationID)
	require.NoError(x.t, json.Unmarshal([]byte(m.body), &answer))
	return answer
}

var lost = broker.LockAnswer{Outcome: "lost"}

func TestLockIsRenewedByRequest(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q, m, token := x.locked("q", amqp.Table{"x-message-ttl": int32(1500), "x-dead-letter-queue": true})
		for range 3 {
			after(900 * time.Millisecond)
			assert.Equal(t, broker.LockAnswer{Outcome: "renewed", LockedUntil: time.Now().UnixMilli() + 1000}, x.renew(x.p, token+"\n"))
		}
		ready, unacked, _ := q.Messages.Counts()
		assert.Equal(t, []int{0, 1}, []int{ready, unacked}, "long past its deadline, and still its receiver's")
		after(999 * time.Millisecond)
		q.Messages.Settle(broker.Ack, []queue.Seq{m.seq}, nil)
		assert.Equal(t, lost, x.renew(x.p, token), "settled")
		after(time.Hour)
		ready, unacked, _ = q.Messages.Counts()
		assert.Zero(t, ready+unacked)
	})
}

func TestRenewedLockLapsesAtItsNewTime(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q, m, token := x.locked("q", amqp.Table{})
		x.publish("", "q", "other", "", nil)
		after(500 * time.Millisecond)
		_, ok := x.get(q, false)
		require.True(t, ok)
		after(300 * time.Millisecond)
		until, ok := q.Messages.Locks.Renew(token)
		require.True(t, ok)
		assert.Equal(t, time.Now().UnixMilli()+1000, until)
		after(700 * time.Millisecond)
		assert.Equal(t, []string{"other"}, x.drain(q), "that of the other was not renewed, and lapses first")
		after(299 * time.Millisecond)
		assert.Empty(t, x.drain(q))
		after(time.Millisecond)
		_, ok = q.Messages.Locks.Renew(token)
		assert.False(t, ok)
		again, ok := x.get(q, false)
		require.True(t, ok)
		assert.Equal(t, m.seq, again.seq)
		_, ok = q.Messages.Locks.Renew(token)
		assert.False(t, ok, "the lock of another delivery")
	})
}

func TestExpiredMessageExpiresWhenItsRenewedLockLapses(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q, _, token := x.locked("q", amqp.Table{"x-message-ttl": int32(1200), "x-dead-letter-queue": true})
		after(900 * time.Millisecond)
		assert.Equal(t, "renewed", x.renew(x.p, token).Outcome)
		dead, err := x.vh.Queues.Get(deadLetters)
		require.NoError(t, err)
		after(999 * time.Millisecond)
		assert.Zero(t, x.ready(dead))
		after(time.Millisecond)
		assert.Zero(t, x.ready(q))
		m, ok := x.get(dead, true)
		require.True(t, ok)
		assert.Equal(t, "TTLExpiredException", m.properties.Headers["DeadLetterReason"])
	})
}

// TestTokenIsOfUseToItsReceiver: and to others who may read the queue; others learn nothing.
func TestTokenIsOfUseToItsReceiver(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q, _, token := x.locked("q", amqp.Table{})
		user := func(name, vhost, read string) *broker.Publisher {
			u := access.User{Name: name}
			u.SetPassword("p")
			require.NoError(t, x.b.Accounts.PutUser(u))
			vh, _, err := x.b.PutVHost("", vhost, broker.VHostMetadata{})
			require.NoError(t, err)
			require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: name, VHost: vhost, Write: ".*", Read: read}))
			return vh.NewPublisher(name)
		}
		assert.Equal(t, lost, x.renew(user("blind", "/", "^answers$"), token))
		assert.Equal(t, "renewed", x.renew(user("reader", "/", "^q$"), token).Outcome)
		other := user("guest2", "other", ".*")
		elsewhere, _ := x.b.VHost("other")
		_, err := elsewhere.Queues.Declare(nil, "answers", broker.QueueDeclare{})
		require.NoError(t, err)
		p := amqp.Properties{ReplyTo: "answers"}
		_, err = other.Add(&broker.Publication{RoutingKey: []byte(broker.LockQueue), Properties: p.Append(nil), Body: []byte(token)})
		require.NoError(t, err)
		other.Flush(nil)
		q2, _ := elsewhere.Queues.Get("answers")
		m, ok := x.get(q2, true)
		require.True(t, ok)
		assert.JSONEq(t, `{"outcome":"lost"}`, m.body, "another virtual host's")

		changed := []byte(token)
		changed[20] ^= 3
		for _, wrong := range []string{"", "no token", token + "A", string(changed), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "!" + token[1:]} {
			assert.Equal(t, lost, x.renew(x.p, wrong), wrong)
		}
		_, ok = x.queue("q3", nil).Messages.Locks.Renew(token)
		assert.False(t, ok, "another queue's")
		_, ok = q.Messages.Locks.Renew(token)
		assert.True(t, ok)
	})
}

// TestLockThatNobodyWasToldOfCannotBeRenewed: without x-delivery-deadline there is no token.
func TestLockThatNobodyWasToldOfCannotBeRenewed(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-lock-duration": int32(1000)})
		x.publish("", "q", "m", "", nil)
		m, _ := x.get(q, false)
		assert.NotContains(t, m.properties.Headers, "x-lock-token")
		assert.Equal(t, lost, x.renew(x.p, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"))
	})
}

func TestRequestIsNumberedAsOnePublish(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		_, _, token := x.locked("q", amqp.Table{})
		x.queue("full", amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"})
		x.queue("answers", nil)
		add := func(key, body, replyTo string) {
			p := amqp.Properties{ReplyTo: replyTo}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte(key), Properties: p.Append(nil), Body: []byte(body)})
			require.NoError(t, err)
		}
		add("answers", "0", "")
		add(broker.LockQueue, token, "answers")
		add("full", "2", "")
		add(broker.LockQueue, token, "nobody")
		add(broker.LockQueue, token, "")
		add("full", "5", "")
		assert.Equal(t, []int{2, 5}, x.p.Flush(nil))
		_, err := x.vh.Queues.Declare(nil, broker.LockQueue, broker.QueueDeclare{})
		assert.Equal(t, "ACCESS_REFUSED - queue name 'curfew.locks' is reserved for requests to renew locks", text(err))
	})
}

// TestRenewalShortensNoLock: a policy that shortens or takes away the duration leaves the locks there are as they are.
func TestRenewalShortensNoLock(t *testing.T) {
	for name, change := range map[string]func(x *testBroker){
		"shorter": func(x *testBroker) { x.govern(policy.Definition{"lock-duration": int64(1000)}) },
		"none":    func(x *testBroker) { x.govern(policy.Definition{"max-length": int64(9)}) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, broker.Options{}, func(x *testBroker) {
				q := x.queue("q", amqp.Table{"x-delivery-deadline": true})
				x.govern(policy.Definition{"lock-duration": int64(60_000)})
				x.publish("", "q", "m", "", nil)
				m, ok := x.get(q, false)
				require.True(t, ok)
				lockedUntil := m.properties.Headers["x-locked-until"]
				change(x)
				after(time.Second)
				until, ok := q.Messages.Locks.Renew(m.properties.Headers["x-lock-token"].(string))
				assert.True(t, ok)
				assert.Equal(t, lockedUntil, until)
				after(58 * time.Second)
				assert.Zero(t, x.ready(q), "it is still its receiver's")
				after(2 * time.Second)
				assert.Equal(t, 1, x.ready(q))
			})
		})
	}
}
