package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

// A dead letter that is tried for weeks leaves nothing behind but itself.
func TestTriesAreNotRecorded(t *testing.T) {
	records := 0
	expiries := new(deadline.Stream)
	expiries.Subscribe(deadline.WithMessage, func(e []deadline.Expiry) { records += len(e) })
	b, err := New(Options{Clock: func() int64 { return 1e9 }, Expiries: expiries})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", QueueDeclare{Durable: true, Args: amqp.Table{
		"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-dead-letter-exchange": "",
		"x-dead-letter-routing-key": "full",
	}})
	require.NoError(t, err)
	_, err = vh.Queues.Declare(nil, "full", QueueDeclare{Args: amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"}})
	require.NoError(t, err)
	p := amqp.Properties{MessageID: "m-1", Expiration: "0"}
	own := vh.OwnPublisher()
	_, err = own.Add(&Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
	require.NoError(t, err)
	own.Flush(nil)
	require.Equal(t, 1, q.Messages.Retained.Count())

	s := b.env.Begin()
	defer s.Done()
	for range 100 {
		q.Messages.Retained.RetrySoon(s)
		q.Messages.OnTimer()
		q.Messages.Letters.Lines.First(s)
	}
	assert.Eventually(t, func() bool { return q.Messages.Retained.Count() == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, 1, records)
	assert.Empty(t, s.Expiries.IDs)
	assert.Empty(t, s.Expiries.Names)
}
