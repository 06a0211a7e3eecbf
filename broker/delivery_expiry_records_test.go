package broker_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// recorded collects what the stream tells, copied.
type recorded struct {
	mu  sync.Mutex
	all []deadline.Expiry
}

func (r *recorded) stream() *deadline.Stream {
	var s deadline.Stream
	s.Subscribe(deadline.WithMessage, r.take)
	return &s
}

func (r *recorded) take(batch []deadline.Expiry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range batch {
		e.MessageID, e.RoutingKey, e.To = slices.Clone(e.MessageID), slices.Clone(e.RoutingKey), slices.Clone(e.To)
		r.all = append(r.all, e)
	}
}

func (x *testBroker) publishNamed(to, id, expiration string) {
	p := amqp.Properties{Expiration: expiration, MessageID: id}
	_, err := x.p.Add(&broker.Publication{RoutingKey: []byte(to), Properties: p.Append(nil)})
	require.NoError(x.t, err)
	x.p.Flush(nil)
}

func TestEveryExpiryIsRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorded
		x := newTestBroker(t, broker.Options{Expiries: r.stream()})
		dropping := x.queue("dropping", nil)
		x.queue("dying", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
		x.queue("dead", nil)
		x.queue("lost", amqp.Table{"x-dead-letter-exchange": "none"})
		held := x.queue("held", nil)
		x.publishNamed("dropping", "a", "1000")
		x.publishNamed("dropping", "acked", "1000")
		x.publishNamed("dying", "b", "1000")
		x.publishNamed("lost", "", "1000")
		x.publishNamed("held", "c", "1000")
		x.publishNamed("dropping", "d", "0")
		refs := x.deadlines()
		var late broker.Delivery
		_, err := held.Messages.Get(false, func(d *broker.Delivery) { late = *d })
		require.NoError(t, err)
		time.Sleep(time.Second)
		_, err = dropping.Messages.Get(true, func(*broker.Delivery) {})
		require.NoError(t, err)
		x.expire(refs)
		x.expire(refs)
		held.Messages.Settle(broker.Requeue, []queue.Seq{late.Seq}, nil)

		var got []string
		for _, e := range r.all {
			assert.Equal(t, "/", e.VHost)
			assert.LessOrEqual(t, e.Ref.Deadline, e.Arrived)
			got = append(got, fmt.Sprint(e.Queue, " ", string(e.MessageID), " ", e.Path, " ", e.Action, " ", e.Exchange, " ", string(e.RoutingKey), " ", e.To))
		}
		slices.Sort(got)
		assert.Equal(t, []string{
			"dropping a lazy dropped   []",
			"dropping acked lazy dropped   []",
			"dropping d lazy dropped   []",
			"dying b eager dead_lettered  dead [dead]",
			"held c requeue dropped   []",
			"lost  eager parked none lost [curfew.undeliverable]",
		}, got)
	})
}

// TestOtherDeathsAreRecorded: where they went and why, each once, apart from the expiries, and only if somebody asks.
func TestOtherDeathsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expired, died recorded
		stream := expired.stream()
		x := newTestBroker(t, broker.Options{Expiries: stream})
		dying := x.queue("dying", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-max-length": int32(1)})
		x.queue("dead", nil)
		lost := x.queue("lost", amqp.Table{"x-dead-letter-exchange": "none"})
		plain := x.queue("plain", nil)
		reject := func(q *broker.Queue) {
			var d broker.Delivery
			_, err := q.Messages.Get(false, func(got *broker.Delivery) { d = *got })
			require.NoError(t, err)
			q.Messages.Settle(broker.Reject, []queue.Seq{d.Seq}, nil)
		}
		x.publishNamed("lost", "not asked for", "")
		reject(lost)
		stream.SubscribeDeaths(died.take)
		x.publishNamed("dying", "first", "")
		x.publishNamed("dying", "second", "")
		reject(dying)
		x.publishNamed("lost", "third", "1000")
		reject(lost)
		x.publishNamed("plain", "dropped", "")
		reject(plain)

		var got []string
		for _, e := range died.all {
			got = append(got, fmt.Sprint(e.Queue, " ", string(e.MessageID), " ", e.Reason, " ", e.Action, " ", e.Exchange, " ", string(e.RoutingKey), " ", e.To))
		}
		assert.Equal(t, []string{
			"dying first maxlen dead_lettered  dead [dead]",
			"dying second rejected dead_lettered  dead [dead]",
			"lost third rejected parked none lost [curfew.undeliverable]",
		}, got)
		assert.Empty(t, expired.all)
	})
}
