package broker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/store"
)

var wantsReceipt = amqp.Table{"x-expiry-receipt": true}

// ask publishes a message that expires in 100 ms and wants a receipt in replies.
func (x *testBroker) ask(queue string, headers amqp.Table, replyTo string) error {
	p := amqp.Properties{Expiration: "100", Headers: headers, ReplyTo: replyTo, CorrelationID: "c-1", MessageID: "m-1"}
	_, err := x.p.Add(&broker.Publication{RoutingKey: []byte(queue), Properties: p.Append(nil), Body: []byte("body")})
	x.p.Flush(nil)
	return err
}

func receiptIn(t *testing.T, m message) (body map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(m.body), &body))
	return body
}

// TestReceipt: whoever notices the expiry, and whatever becomes of the message, its
// publisher gets one receipt.
func TestReceipt(t *testing.T) {
	for name, c := range map[string]struct {
		args    amqp.Table
		eager   bool
		outcome string
	}{
		"lazy, dropped":        {nil, false, "dropped"},
		"eager, dropped":       {nil, true, "dropped"},
		"lazy, dead-lettered":  {amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}, false, "dead_lettered"},
		"eager, dead-lettered": {amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}, true, "dead_lettered"},
		"eager, parked":        {amqp.Table{"x-dead-letter-exchange": "none"}, true, "parked"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, broker.Options{}, func(x *testBroker) {
				q := x.queue("q", c.args)
				dead, replies := x.queue("dead", amqp.Table{"x-message-ttl": int64(50)}), x.queue("replies", nil)
				require.NoError(t, x.ask("q", wantsReceipt, "replies"))
				refs := x.deadlines()
				due := time.Now().Add(100 * time.Millisecond)
				time.Sleep(130 * time.Millisecond)
				if c.eager {
					results := x.expire(refs)
					require.Equal(t, deadline.Expired, results[0].Outcome)
				}
				_, ok := x.get(q, true)
				require.False(t, ok)

				m, ok := x.get(replies, true)
				require.True(t, ok)
				assert.Equal(t, map[string]any{
					"event": "expired", "message_id": "m-1", "correlation_id": "c-1", "vhost": "/", "queue": "q",
					"deadline": due.UTC().Format("2006-01-02T15:04:05.000Z07:00"), "lateness_ms": 30.0, "outcome": c.outcome,
				}, receiptIn(t, m))
				assert.Equal(t, "c-1", m.properties.CorrelationID)
				assert.Equal(t, "curfew.expiry-receipt", m.properties.Type)
				assert.EqualValues(t, 1, m.properties.DeliveryMode, "transient")
				assert.Empty(t, m.properties.ReplyTo)
				assert.Nil(t, m.properties.Headers, "a receipt asks for none")

				time.Sleep(time.Second) // the dead letter expires, too
				_, ok = x.get(dead, true)
				require.False(t, ok)
				_, ok = x.get(replies, true)
				require.False(t, ok, "one receipt")
			})
		})
	}
}

// TestNoReceipt: what was consumed, purged or never asked owes none; nor does one
// that says false.
func TestNoReceipt(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q, replies := x.queue("q", nil), x.queue("replies", nil)
		require.NoError(t, x.ask("q", wantsReceipt, "replies"))
		_, ok := x.get(q, true)
		require.True(t, ok)
		require.NoError(t, x.ask("q", nil, "replies"))
		require.NoError(t, x.ask("q", amqp.Table{"x-expiry-receipt": false}, "replies"))
		time.Sleep(time.Second)
		_, ok = x.get(q, true)
		require.False(t, ok)
		_, ok = x.get(replies, true)
		require.False(t, ok)
	})
}

// TestReceiptOfWhatIsRetained: a dead letter that waits for its exchange is not lost, and
// its publisher is not told that it is.
func TestReceiptOfWhatIsRetained(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.quorum("q", atLeastOnce("none", nil))
		replies := x.queue("replies", nil)
		require.NoError(t, x.ask("q", wantsReceipt, "replies"))
		time.Sleep(100 * time.Millisecond)
		x.expire(x.deadlines())
		m, ok := x.get(replies, true)
		require.True(t, ok)
		assert.Equal(t, "dead_lettered", receiptIn(t, m)["outcome"])
	})
}

// TestReceiptIsNotTakenForTheDeadLetter: both go to one queue, the dead letter later.
func TestReceiptIsNotTakenForTheDeadLetter(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.quorum("q", atLeastOnce("later", nil))
		replies := x.queue("replies", nil)
		require.NoError(t, x.ask("q", wantsReceipt, "replies"))
		time.Sleep(100 * time.Millisecond)
		x.expire(x.deadlines())
		require.NoError(t, x.vh.Exchanges.Declare("later", broker.ExchangeDeclare{Kind: "fanout"}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "later", Destination: "replies"}))
		after(2 * time.Second)
		bodies := x.drain(replies)
		require.Len(t, bodies, 2)
		require.Equal(t, "body", bodies[1])
	})
}

// TestReceiptWithNowhereToGo: it is counted, and nothing else suffers.
func TestReceiptWithNowhereToGo(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		require.NoError(t, x.ask("q", wantsReceipt, "nobody"))
		require.NoError(t, x.ask("q", wantsReceipt, "nobody"))
		time.Sleep(time.Second)
		_, ok := x.get(q, true)
		require.False(t, ok)
		reg := prometheus.NewPedanticRegistry()
		require.NoError(t, reg.Register(x.b))
		count, err := testutil.GatherAndCount(reg, "curfew_expiry_receipts_total")
		require.NoError(t, err)
		require.Equal(t, 3, count)
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() != "curfew_expiry_receipts_total" {
				continue
			}
			for _, m := range f.GetMetric() {
				want := map[string]float64{"unroutable": 2}[m.GetLabel()[0].GetValue()]
				require.Equal(t, want, m.GetCounter().GetValue(), m.GetLabel()[0].GetValue())
			}
		}
	})
}

// TestReceiptByDirectReply: the reply goes to the channel that waits for it.
func TestReceiptByDirectReply(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		var got []string
		name := x.vh.OpenReply(func(p *broker.Publication) { got = append(got, string(p.Body)) })
		x.p.ReplyTo = name
		require.NoError(t, x.ask("q", wantsReceipt, broker.ReplyQueue))
		time.Sleep(time.Second)
		_, ok := x.get(q, true)
		require.False(t, ok)
		require.Len(t, got, 1)
		require.Contains(t, got[0], `"message_id":"m-1"`)
	})
}

func TestReceiptsThatAreRefused(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.queue("q", nil)
		require.ErrorContains(t, x.ask("q", amqp.Table{"x-expiry-receipt": "yes"}, "replies"), "invalid x-expiry-receipt header type; expected boolean")
		require.ErrorContains(t, x.ask("q", wantsReceipt, ""), "x-expiry-receipt header needs a reply-to property")
	})
}

// TestReceiptAfterRestart: what asked for one before still does.
func TestReceiptAfterRestart(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, broker.Options{Store: store.Options{Dir: dir}}, func(x *testBroker) {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
		require.NoError(t, err)
		p := amqp.Properties{Expiration: "1000", Headers: wantsReceipt, ReplyTo: "replies", DeliveryMode: 2}
		_, err = x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
		require.NoError(t, err)
		x.p.Flush(nil)
	})
	inBubble(t, broker.Options{Store: store.Options{Dir: dir}}, func(x *testBroker) {
		replies := x.queue("replies", nil)
		time.Sleep(time.Hour)
		x.expire(x.deadlines())
		m, ok := x.get(replies, true)
		require.True(t, ok)
		require.Equal(t, "q", receiptIn(t, m)["queue"])
	})
}
