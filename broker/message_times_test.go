package broker_test

import (
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
)

func TestDeadlineIsTheLowest(t *testing.T) {
	for _, c := range []struct {
		precedence          policy.Precedence
		queue, own, ceiling int64 // <0 none
		absolute            int64 // from now; 0 none
		want                int64 // from now; 0 never
	}{
		{policy.Lower, -1, -1, -1, 300, 300},
		{policy.Lower, 200, -1, -1, 300, 200},
		{policy.Lower, 200, 100, -1, 300, 100},
		{policy.Lower, 400, 500, -1, 300, 300},
		{policy.Lower, -1, -1, 250, 300, 250},
		{policy.Lower, 400, 500, 250, 0, 250},
		{policy.Lower, 100, -1, 250, 0, 100},
		{policy.Lower, -1, -1, 250, 0, 250},
		{policy.MessageFirst, 100, -1, -1, 300, 300},
		{policy.MessageFirst, 100, 200, -1, 300, 200},
		{policy.MessageFirst, 100, -1, 250, 0, 100},
		{policy.MessageFirst, 100, 300, 250, 0, 250},
	} {
		inBubble(t, broker.Options{TTLPrecedence: c.precedence}, func(x *testBroker) {
			args := func(name string, ttl int64) amqp.Table {
				if ttl < 0 {
					return nil
				}
				return amqp.Table{name: ttl}
			}
			x.queue("q", args("x-message-ttl", c.queue))
			require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Args: args("x-message-ttl", c.ceiling)}))
			require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "x", Destination: "q"}))
			now, expiration, headers := time.Now().UnixMilli(), "", amqp.Table(nil)
			if c.own >= 0 {
				expiration = time.Duration(c.own).String()
				expiration = expiration[:len(expiration)-2]
			}
			if c.absolute != 0 {
				headers = amqp.Table{"x-expires-at": now + c.absolute}
			}
			x.publish("x", "", "m", expiration, headers)
			refs := x.deadlines()
			require.Len(t, refs, 1, "%+v", c)
			assert.Equal(t, deadline.FromUnixMilli(now+c.want), refs[0].Deadline, "%+v", c)
		})
	}
}

// TestDeadlinesAreWholeMicroseconds: they count from the next one, pass not before it, and are shown to users in whole ms.
func TestDeadlinesAreWholeMicroseconds(t *testing.T) {
	var now atomic.Int64
	now.Store(1_700_000_000_000_123_001)
	x := newTestBroker(t, broker.Options{Clock: now.Load})
	x.queue("q", nil)
	x.publish("", "q", "m", "2", nil)
	ref := x.one()
	require.EqualValues(t, 1_700_000_000_002_124, ref.Deadline)
	assert.EqualValues(t, 1_700_000_000_003, x.b.UnixMillis(ref.Deadline))
	now.Store(1_700_000_000_002_123_999)
	assert.Equal(t, deadline.NotDue, x.expire([]deadline.Ref{ref})[0].Outcome)
	now.Add(1)
	assert.Equal(t, deadline.Answer{Outcome: deadline.Expired, At: 1_700_000_000_002_124}, x.expire([]deadline.Ref{ref})[0])
}

func TestDeadlineInThePastExpiresAtOnce(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		dead := x.queue("dead", nil)
		q := x.queue("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
		c := newSink(t, q, true)
		at := amqp.Timestamp(time.Now().Unix() - 3600)
		x.publish("", "q", "m", "", amqp.Table{"x-expires-at": at})
		assert.Empty(t, c.take(), "though a consumer waits")
		m, ok := x.get(dead, true)
		require.True(t, ok)
		assert.NotContains(t, m.properties.Headers, "x-expires-at", "or it would expire again where it is published next")
		entry := m.properties.Headers["x-death"].([]any)[0].(amqp.Table)
		assert.Equal(t, at, entry["original-expires-at"])
		assert.Equal(t, "expired", entry["reason"])
	})
}

func TestCeilingsAddUpAlongTheWay(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		far, near := x.queue("far", nil), x.queue("near", nil)
		declare := func(name string, ttl any) {
			args := amqp.Table{}
			if ttl != nil {
				args["x-message-ttl"] = ttl
			}
			require.NoError(t, x.vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout", Args: args}))
		}
		declare("a", int32(1000))
		declare("b", int32(100))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "a", Destination: "near"}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "a", Destination: "b", ToExchange: true}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "b", Destination: "far"}))
		now := deadline.At(time.Now())
		x.publish("a", "", "m", "", nil)
		deadlines := map[uint64]int64{}
		for _, ref := range x.deadlines() {
			deadlines[ref.Queue] = ref.Deadline.Sub(now).Microseconds()
		}
		assert.Equal(t, map[uint64]int64{near.ID: 1_000_000, far.ID: 100_000}, deadlines)
		err := x.vh.Exchanges.Declare("c", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{"x-message-ttl": "soon"}})
		assert.Equal(t, `PRECONDITION_FAILED - invalid arg 'x-message-ttl' for exchange 'c' in vhost '/': "expected integer, got longstr"`, text(err))
		synctest.Wait()
	})
}

// TestLowestCeilingOfAllWaysHolds: ways that part and come together again, over an
// alternate exchange and in circles, whichever is taken first.
func TestLowestCeilingOfAllWaysHolds(t *testing.T) {
	type way struct{ from, to string }
	for name, c := range map[string]struct {
		ttl       map[string]int64
		alternate map[string]string
		ways      []way // a name that begins with q is a queue's
		want      map[string]int64
	}{
		"second way to a queue": {
			map[string]int64{"b": 100}, nil,
			[]way{{"a", "q"}, {"a", "b"}, {"b", "q"}}, map[string]int64{"q": 100},
		},
		"second way to an exchange": {
			map[string]int64{"b": 100}, nil,
			[]way{{"a", "m"}, {"a", "b"}, {"b", "m"}, {"m", "q"}}, map[string]int64{"q": 100},
		},
		"the way with the ceiling first": {
			map[string]int64{"b": 100}, nil,
			[]way{{"a", "b"}, {"b", "m"}, {"a", "m"}, {"m", "q"}, {"a", "q2"}}, map[string]int64{"q": 100, "q2": 0},
		},
		"three ways, and another queue": {
			map[string]int64{"a": 1000, "b": 300, "c": 200, "m": 500}, nil,
			[]way{{"a", "m"}, {"a", "b"}, {"a", "c"}, {"b", "m"}, {"c", "m"}, {"m", "q"}, {"b", "q2"}, {"a", "q3"}},
			map[string]int64{"q": 200, "q2": 300, "q3": 1000},
		},
		"by an alternate exchange": {
			map[string]int64{"b": 100}, map[string]string{"b": "m"},
			[]way{{"a", "m"}, {"a", "b"}, {"m", "q"}}, map[string]int64{"q": 100},
		},
		"in a circle": {
			map[string]int64{"b": 100}, nil,
			[]way{{"a", "b"}, {"b", "a"}, {"a", "q"}}, map[string]int64{"q": 100},
		},
	} {
		inBubble(t, broker.Options{}, func(x *testBroker) {
			names := map[uint64]string{}
			declared := map[string]bool{}
			declare := func(name string) {
				if declared[name] {
					return
				}
				declared[name] = true
				if name[0] == 'q' {
					names[x.queue(name, nil).ID] = name
					return
				}
				args := amqp.Table{}
				if ttl, ok := c.ttl[name]; ok {
					args["x-message-ttl"] = ttl
				}
				if other, ok := c.alternate[name]; ok {
					args["alternate-exchange"] = other
				}
				require.NoError(t, x.vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout", Args: args}))
			}
			for _, w := range c.ways {
				declare(w.from)
				declare(w.to)
				require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: w.from, Destination: w.to, ToExchange: w.to[0] != 'q'}))
			}
			now := deadline.At(time.Now())
			x.publish("a", "", "m", "", nil)
			got := map[string]int64{}
			for _, ref := range x.deadlines() {
				got[names[ref.Queue]] = ref.Deadline.Sub(now).Milliseconds()
			}
			want := map[string]int64{}
			for q, ttl := range c.want {
				if ttl != 0 {
					want[q] = ttl
				}
			}
			assert.Equal(t, want, got, name)
		})
	}
}

// What is published a message at a time takes no memory of its own.
func TestPublishAllocatesNothing(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", amqp.Table{"x-max-length": int32(10)})
	p := amqp.Properties{DeliveryMode: 1, Headers: amqp.Table{"trace": "0123456789", "attempt": int32(1)}}
	m := broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte("body")}
	batch := func() {
		for range 64 {
			_, err := x.p.Add(&m)
			require.NoError(t, err)
		}
		x.p.Flush(nil)
	}
	for range 100 {
		batch()
	}
	assert.Less(t, testing.AllocsPerRun(100, batch), 32.0, "for 64: the race detector has the pool of steps forget some")
}

func BenchmarkPublish(b *testing.B) {
	br, err := broker.New(broker.Options{})
	require.NoError(b, err)
	vh, _ := br.VHost("/")
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-max-length": int32(1000)}})
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		p    amqp.Properties
	}{
		{"bare", amqp.Properties{DeliveryMode: 1}},
		{"headers", amqp.Properties{DeliveryMode: 1, Headers: amqp.Table{"trace": "0123456789", "attempt": int32(1), "kind": "order"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			publisher := vh.NewPublisher("guest")
			m := broker.Publication{RoutingKey: []byte("q"), Properties: c.p.Append(nil), Body: make([]byte, 100)}
			b.ReportAllocs()
			for i := range b.N {
				publisher.Add(&m)
				if i%64 == 63 {
					publisher.Flush(nil)
				}
			}
			publisher.Flush(nil)
		})
	}
	require.NoError(b, br.Close())
}

func TestDeadlineCountsFromEnteringTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		x.queue("q", deadLettersToDLQ)
		x.queue("dlq", amqp.Table{"x-message-ttl": int32(1000)})
		x.publish("", "q", "m", "10", nil)
		time.Sleep(5 * time.Second)
		x.expire(x.deadlines())
		assert.Equal(t, x.b.Now()+1_000_000, x.deadlines()[0].Deadline)
	})
}
