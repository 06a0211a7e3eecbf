package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// dying runs fn with a broker in virtual time. The queue dies has a time to live and dead-letters to the queue ttl, which only has a time to
// live; keeps dead-letters to it, too, but has none.
func dying(t *testing.T, fn func(b *Broker, vh *VHost)) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Options{Clock: func() int64 { return time.Now().UnixNano() }})
		require.NoError(t, err)
		defer func() { assert.NoError(t, b.Close()) }()
		vh, _ := b.VHost("/")
		ttl, exchange, key := int64(3_600_000), "", "ttl"
		for name, args := range map[string]amqp.Table{
			"dies":  {"x-message-ttl": ttl, "x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key},
			"keeps": {"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key},
			"ttl":   {"x-message-ttl": ttl},
		} {
			_, err := vh.Queues.Declare(nil, name, QueueDeclare{Args: args})
			require.NoError(t, err)
		}
		fn(b, vh)
	})
}

// took is how long fn took.
func took(fn func()) time.Duration {
	began := time.Now()
	fn()
	return time.Since(began)
}

// A client that can wait waits while dead letters of its virtual host are moved more slowly than messages expire, if its own may become more of
// them: once for all that it has published, and not while it publishes, since it may hold a turn.
func TestPublisherWaitsForDeadLetters(t *testing.T) {
	const patience, many = 20 * time.Millisecond, 1<<15 + 1
	dying(t, func(b *Broker, vh *VHost) {
		r := b.RightsOf("guest", "/")
		r.Pace(true)
		channels := []*Publisher{r.NewPublisher(vh), r.NewPublisher(vh), r.NewPublisher(vh)}
		publish := func(n int, queues ...string) time.Duration {
			require.Zero(t, took(func() {
				for i, p := range channels {
					for _, q := range queues {
						for range n {
							addMessage(t, p, q, []byte("m"), "")
						}
					}
					if i == 0 {
						p.Transact(nil, nil)
					} else {
						p.Flush(nil)
					}
				}
			}))
			return took(r.Pacing.AwaitLetters)
		}
		waiting := &vh.letters.Lines().Waiting
		assert.Zero(t, publish(1, "dies"), "few are on their way")
		waiting.Add(many)
		assert.Equal(t, patience, publish(1, "dies"))
		assert.Equal(t, patience, publish(5*queue.AtOnce, "dies"), "once, however many")
		assert.Equal(t, patience, publish(1, "dies", "ttl"), "whatever else was published")
		assert.Zero(t, took(r.Pacing.AwaitLetters), "it has waited for them")
		assert.Zero(t, publish(1, "ttl"), "they are not dead-lettered")
		assert.Zero(t, publish(1, "keeps"), "they do not expire")
		time.AfterFunc(4500*time.Microsecond, func() { waiting.Add(-many) })
		assert.Equal(t, 5*time.Millisecond, publish(1, "dies"), "until they have been moved")
		waiting.Add(many)
		r.Pace(false)
		assert.Zero(t, publish(1, "dies"), "it consumes")
		waiting.Add(-many)
	})
}

// A publisher that moves the dead letters which it causes waits for nothing meanwhile: others wait for the queue's turn.
func TestTurnOfDeadLettersWaitsForNothing(t *testing.T) {
	dying(t, func(b *Broker, vh *VHost) {
		r := b.RightsOf("guest", "/")
		r.Pace(true)
		p := r.NewPublisher(vh)
		b.env.Feed.On.Store(true)
		b.env.Feed.Push(make([]deadline.Event, 1<<14+1))
		addMessage(t, p, "keeps", []byte("m"), "0")
		assert.Zero(t, took(func() { p.Flush(nil) }))
		q, err := vh.Queues.Get("ttl")
		require.NoError(t, err)
		assert.Equal(t, 1, q.Messages.State().Ready, "it moved it")
		addMessage(t, p, "ttl", []byte("m"), "")
		assert.Equal(t, 20*time.Millisecond, took(func() { p.Flush(nil) }), "the monitor is behind")
	})
}
