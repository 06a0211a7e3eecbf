package broker

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/store"
)

// A dead letter that is tried for weeks leaves nothing behind but itself.
func TestTriesAreNotRecorded(t *testing.T) {
	records := 0
	b, err := New(Options{Clock: func() int64 { return 1e9 }, OnExpired: func(e []Expiry) { records += len(e) }})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	q, err := vh.DeclareQueue(nil, "q", QueueDeclare{Durable: true, Args: amqp.Table{
		"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-dead-letter-exchange": "",
		"x-dead-letter-routing-key": "full",
	}})
	require.NoError(t, err)
	_, err = vh.DeclareQueue(nil, "full", QueueDeclare{Args: amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"}})
	require.NoError(t, err)
	p := amqp.Properties{MessageID: "m-1", Expiration: "0"}
	own := vh.OwnPublisher()
	_, err = own.Add(&Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
	require.NoError(t, err)
	own.Flush(nil)
	require.Equal(t, 1, q.Retained())

	s := b.step()
	defer s.done()
	for range 100 {
		q.lock(s)
		q.retained.retryAt = s.now
		q.retry(s)
		q.mu.Unlock()
		b.forwarder.take(s, q)
	}
	assert.Equal(t, 1, q.Retained())
	assert.Equal(t, 1, records)
	assert.Empty(t, s.expiries.ids)
	assert.Empty(t, s.expiries.names)
}

// A target has the dead letter in memory only, another refused it: whatever becomes of
// later tries, the journal keeps the original.
func TestUnsavedCopyKeepsTheOriginalInTheJournal(t *testing.T) {
	b, err := New(Options{})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	q, err := vh.DeclareQueue(nil, "q", QueueDeclare{})
	require.NoError(t, err)
	s := b.step()
	defer s.done()
	x := crossing{from: q, letter: letter{set: q.set(), queued: true, unsaved: true}}
	require.True(t, q.retain(s, &x))
	assert.False(t, q.retained.line[0].unsaved, "nobody has it: the next try counts")
	x.into = []store.Enqueue{{Queue: 7, Pos: 1}}
	require.True(t, q.retain(s, &x))
	assert.True(t, q.retained.line[1].unsaved)
	q.mu.Lock()
	q.retained = retained{}
	q.mu.Unlock()
}
