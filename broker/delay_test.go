package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/store"
)

// inBubble runs fn with a broker in virtual time.
func inBubble(t *testing.T, o broker.Options, fn func(x *testBroker)) {
	synctest.Test(t, func(t *testing.T) {
		o.Clock = wallClock
		b, err := broker.New(o)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, b.Close()) })
		vh, _ := b.VHost("/")
		fn(&testBroker{t: t, b: b, vh: vh, p: vh.NewPublisher("guest")})
	})
}

// after lets time pass and what it brings happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestDelayedMessageIsRoutedWhenDue(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{
			Kind: "x-delayed-message", Args: amqp.Table{"x-delayed-type": "topic"},
		}))
		q := x.queue("q", nil)
		x.publish("x", "a.b", "late", "", amqp.Table{"x-delay": int32(500)})
		x.publish("x", "a.b", "soon", "", amqp.Table{"x-delay": "200"})
		x.publish("x", "a.b", "later", "", amqp.Table{"x-scheduled-enqueue-time": time.Now().Add(700 * time.Millisecond).UnixMilli()})
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "x", Destination: "q", RoutingKey: "a.*"})) // routed when due, not now
		x.publish("x", "a.b", "now", "", nil)
		assert.Equal(t, []string{"now"}, x.drain(q))
		assert.Equal(t, 3, x.vh.DelayedFor("x"))
		after(199 * time.Millisecond)
		assert.Empty(t, x.drain(q))
		after(time.Millisecond)
		assert.Equal(t, []string{"soon"}, x.drain(q))
		after(300 * time.Millisecond)
		m, ok := x.get(q, true)
		require.True(t, ok)
		assert.Equal(t, "late", m.body)
		assert.Equal(t, "x", m.exchange)
		assert.Equal(t, "a.b", m.key)
		assert.False(t, m.redelivery)
		assert.Equal(t, amqp.Table{"x-delay": int32(-500)}, m.properties.Headers, "negated, so that a consumer who publishes it again does not delay it")
		after(200 * time.Millisecond)
		assert.Equal(t, []string{"later"}, x.drain(q))
		assert.Zero(t, x.vh.DelayedFor("x"))
	})
}

func TestDelaysThatAreNone(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		for i, headers := range []amqp.Table{
			{"x-delay": int32(0)}, {"x-delay": int32(-500)}, {"x-delay": "-1"}, {"x-delay": 0.9},
			{"x-scheduled-enqueue-time": amqp.Timestamp(time.Now().Unix() - 1)}, {"x-scheduled-enqueue-time": time.Now().UnixMilli()},
			{"x-delay": nil}, {"x-delay": true}, {"x-delay": amqp.Table{}}, {"x-delay": []any{int32(1000)}}, {"x-delay": amqp.Timestamp(time.Now().Unix() + 60)}, {"x-delay": []byte("1000")},
		} {
			x.publish("", "q", fmt.Sprint(i), "", headers)
		}
		assert.Len(t, x.drain(q), 12)
	})
}

func TestTimesThatAreRefused(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", nil)
	tooFar := time.Now().Add(11 * 365 * 24 * time.Hour)
	for _, c := range []struct {
		headers amqp.Table
		text    string
	}{
		{amqp.Table{"x-delay": "soon"}, "invalid header 'x-delay': expected integer, got longstr"},
		{amqp.Table{"x-delay": int64(315360000001)}, "invalid header 'x-delay': {value_too_large,315360000001}"},
		{amqp.Table{"x-scheduled-enqueue-time": "noon"}, "invalid header 'x-scheduled-enqueue-time': expected timestamp or integer of milliseconds, got longstr"},
		{amqp.Table{"x-expires-at": true}, "invalid header 'x-expires-at': expected timestamp or integer of milliseconds, got bool"},
		{amqp.Table{"x-expires-at": int64(-1)}, "invalid header 'x-expires-at': {value_negative,-1}"},
		{amqp.Table{"x-expires-at": amqp.Timestamp(tooFar.Unix())}, fmt.Sprintf("invalid header 'x-expires-at': %d is more than ten years ahead", tooFar.Unix()*1000)},
		{amqp.Table{"x-expires-at": amqp.Timestamp(1 << 63)}, "invalid header 'x-expires-at': 9223372036854775000 is more than ten years ahead"},
	} {
		p := amqp.Properties{Headers: c.headers}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
		assert.EqualValues(t, 406, code(err))
		assert.Equal(t, "PRECONDITION_FAILED - "+c.text, text(err))
	}
	assert.Zero(t, x.p.Pending())
}

func TestTimeToLiveOfADelayedMessageCountsFromItsTime(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-message-ttl": int32(400)})
		x.publish("", "q", "a", "600000", amqp.Table{"x-delay": int32(1000)})
		x.publish("", "q", "b", "100", amqp.Table{"x-delay": int32(1000)})
		x.publish("", "q", "c", "", amqp.Table{"x-delay": int32(1000), "x-expires-at": time.Now().UnixMilli() + 1050})
		x.publish("", "q", "d", "", amqp.Table{"x-delay": int32(1000), "x-expires-at": time.Now().UnixMilli() + 900})
		assert.Empty(t, x.deadlines(), "a delay is not a deadline")
		at := deadline.At(time.Now())
		after(time.Second)
		var deadlines []int64
		for _, ref := range x.deadlines() {
			deadlines = append(deadlines, ref.Deadline.Sub(at).Milliseconds())
		}
		assert.Equal(t, []int64{1400, 1100, 1050}, deadlines, "d expired when it came")
		after(100 * time.Millisecond)
		assert.Equal(t, []string{"a"}, x.drain(q))
	})
}

func TestDelayedMessageThatIsMandatoryIsNotReturned(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		p := amqp.Properties{Headers: amqp.Table{"x-delay": int32(10)}}
		m := broker.Publication{RoutingKey: []byte("nowhere"), Properties: p.Append(nil)}
		routed, err := x.p.Add(&m)
		require.NoError(t, err)
		assert.True(t, routed, "whether it will be is not known")
		x.p.Flush(nil)
		after(10 * time.Millisecond)
		page, _ := x.vh.Delayed(0, 10)
		assert.Empty(t, page)
		m.Exchange = []byte("missing")
		_, err = x.p.Add(&m)
		assert.EqualValues(t, 404, code(err))
	})
}

func TestCancelDelayed(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		for i := range 5000 {
			x.publish("", "q", fmt.Sprint(i), "", amqp.Table{"x-delay": int32(1000 + i%7)})
		}
		first, next := x.vh.Delayed(0, 3000)
		rest, end := x.vh.Delayed(next, 3000)
		require.Len(t, first, 3000)
		require.Len(t, rest, 2000)
		require.Zero(t, end)
		assert.Equal(t, "q", first[0].RoutingKey)
		for _, m := range append(first[1:], rest...) {
			require.True(t, x.vh.CancelDelayed(m.Ref))
			require.False(t, x.vh.CancelDelayed(m.Ref), "once")
		}
		assert.Equal(t, 1, x.vh.DelayedFor(""))
		after(2 * time.Second)
		assert.Equal(t, []string{"0"}, x.drain(q))
		assert.False(t, x.vh.CancelDelayed(first[0].Ref), "it is enqueued")
	})
}

func TestDelayedMessagesOutliveARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	send := func(body string, mode uint8, headers amqp.Table) {
		p := amqp.Properties{DeliveryMode: mode, MessageID: body, Headers: headers}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte(body)})
		require.NoError(t, err)
		x.p.Flush(nil)
		x.commit()
	}
	hour := int32(3_600_000)
	send("moved", 1, amqp.Table{})
	ready, err := x.called("q").Messages.Browse(broker.Browse{Count: 1})
	require.NoError(t, err)
	again := amqp.Properties{DeliveryMode: 1, MessageID: "moved", Headers: amqp.Table{"x-delay": hour}}
	outcome, err := x.p.Move(x.called("q").Messages.Ref(&ready[0]), &broker.Publication{RoutingKey: []byte("q"), Properties: again.Append(nil)}, false)
	require.NoError(t, err)
	require.Equal(t, broker.Moved, outcome)
	send("soon", 2, amqp.Table{"x-delay": int32(50)})
	send("transient", 1, amqp.Table{"x-delay": hour})
	send("late", 2, amqp.Table{"x-delay": hour})
	send("replaced", 1, amqp.Table{"x-delay": hour})
	send("instead", 1, amqp.Table{"x-delay": hour, "x-replace": "replaced"})
	send("answered", 1, amqp.Table{"x-delay": hour, "x-schedule-answer": true})
	x = restarted(t, o, x.b)
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	require.Eventually(t, func() bool { ready, _, _ := q.Messages.Counts(); return ready == 1 }, time.Minute, time.Millisecond)
	page, _ := x.vh.Delayed(0, 10)
	var waits []string
	for _, one := range page {
		waits = append(waits, one.ID)
		assert.True(t, x.vh.CancelDelayed(one.Ref))
	}
	require.Equal(t, []string{"moved", "transient", "late", "instead", "answered"}, waits, "whatever the delivery mode: the delayed-message plugin keeps all on disk")
	x.commit()

	x = restarted(t, o, x.b)
	page, _ = x.vh.Delayed(0, 10)
	assert.Empty(t, page, "cancelled is cancelled")
	q, err = x.vh.Queues.Get("q")
	require.NoError(t, err)
	m, ok := x.get(q, true)
	require.True(t, ok)
	assert.Equal(t, "soon", m.body)
	require.NoError(t, x.b.Close())
}

// A publisher who was told that nothing can be saved is not told the opposite before it is.
func TestDelayedMessageWaitsForItsQueueToBeSaved(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	free := x.fillDefinitions(o.Store.Dir)
	p := amqp.Properties{DeliveryMode: 2, Headers: amqp.Table{"x-delay": int64(3_600_000)}}
	m := broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)}
	for range 2 {
		_, err := x.p.Add(&m)
		require.ErrorContains(t, err, "save definitions")
	}
	free()
	_, err := x.p.Add(&m)
	require.NoError(t, err)
	x.p.Flush(nil)
	x.commit()
	x = restarted(t, o, x.b)
	page, _ := x.vh.Delayed(0, 10)
	assert.Len(t, page, 1)
	require.NoError(t, x.b.Close())
}

func TestDelayedMessagesGoWithTheirVirtualHost(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		vh, _, err := x.b.PutVHost("", "v", broker.VHostMetadata{})
		require.NoError(t, err)
		require.NoError(t, x.b.Accounts.SetPermission(access.Permission{VHost: "v", User: "guest", Configure: ".*", Write: ".*", Read: ".*"}))
		p := vh.NewPublisher("guest")
		properties := amqp.Properties{Headers: amqp.Table{"x-delay": int32(10)}}
		_, err = p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
		require.NoError(t, err)
		p.Flush(nil)
		require.NoError(t, x.b.DeleteVHost("v"))
		after(time.Minute)
		page, _ := vh.Delayed(0, 10)
		assert.Empty(t, page)
	})
}

func TestDelayedMessagesComeInTheOrderOfTheirTimes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		delays := rapid.SliceOfN(rapid.Int32Range(1, 50), 1, 600).Draw(rt, "delays")
		inBubble(t, broker.Options{}, func(x *testBroker) {
			q := x.queue("q", nil)
			type sent struct {
				at   int32
				body string
			}
			var want []sent
			for i, d := range delays {
				body := fmt.Sprint(i)
				p := amqp.Properties{Headers: amqp.Table{"x-delay": d}}
				_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte(body)})
				require.NoError(t, err)
				want = append(want, sent{d, body})
			}
			x.p.Flush(nil)
			slices.SortStableFunc(want, func(a, b sent) int { return int(a.at - b.at) })
			after(time.Second)
			got := x.drain(q)
			require.Len(t, got, len(want))
			for i := range want {
				require.Equal(t, want[i].body, got[i])
			}
		})
	})
}

// TestDelayedMessageGoesToTheExchangeOfItsName: one that was made again meanwhile gets it as
// it would a publish of that moment. That takes the permissions it always takes.
func TestDelayedMessageGoesToTheExchangeOfItsName(t *testing.T) {
	for name, c := range map[string]struct {
		again broker.ExchangeDeclare
		want  []string
	}{
		"alike":             {broker.ExchangeDeclare{Kind: "direct"}, []string{"bound"}},
		"another type":      {broker.ExchangeDeclare{Kind: "fanout"}, []string{"bound", "other"}},
		"internal":          {broker.ExchangeDeclare{Kind: "fanout", Internal: true}, nil},
		"with an alternate": {broker.ExchangeDeclare{Kind: "headers", Args: amqp.Table{"alternate-exchange": "amq.fanout"}}, []string{"rest"}},
	} {
		inBubble(t, broker.Options{}, func(x *testBroker) {
			queues := []string{"bound", "other", "rest"}
			for _, q := range queues {
				x.queue(q, nil)
			}
			require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: "rest"}))
			require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "direct"}))
			x.publish("x", "key", "m", "", amqp.Table{"x-delay": int32(1000)})

			stranger := x.rights("stranger", access.Permission{Configure: "^stranger", Write: "^stranger", Read: "^stranger"})
			assert.EqualValues(t, 403, code(stranger.DeleteExchange(x.vh, "x", false)))
			assert.EqualValues(t, 403, code(stranger.DeclareExchange(x.vh, "x", c.again)))
			_, err := stranger.DeclareQueue(x.vh, nil, "stranger", broker.QueueDeclare{})
			require.NoError(t, err)
			toStranger := broker.Binding{Source: "x", Destination: "stranger", RoutingKey: "key"}
			assert.EqualValues(t, 403, code(stranger.Bind(x.vh, nil, toStranger)))
			owner := x.rights("owner", access.Permission{Configure: "^x$", Read: "^x$", Write: `^(bound|other|amq\.fanout)$`})
			require.NoError(t, owner.DeleteExchange(x.vh, "x", false))
			assert.EqualValues(t, 403, code(stranger.DeclareExchange(x.vh, "x", c.again)), "the name is not anybody's either")
			require.NoError(t, owner.DeclareExchange(x.vh, "x", c.again))
			for q, key := range map[string]string{"bound": "key", "other": "other key"} {
				args := amqp.Table(nil)
				if c.again.Kind == "headers" {
					args = amqp.Table{"none": "has it"}
				}
				require.NoError(t, owner.Bind(x.vh, nil, broker.Binding{Source: "x", Destination: q, RoutingKey: key, Args: args}))
			}
			assert.EqualValues(t, 403, code(stranger.Bind(x.vh, nil, toStranger)))

			after(time.Second)
			var got []string
			for _, name := range queues {
				if q, _ := x.vh.Queues.Get(name); len(x.drain(q)) > 0 {
					got = append(got, name)
				}
			}
			assert.Equal(t, c.want, got, name)
		})
	}
}

// rights makes a user with these permissions.
func (x *testBroker) rights(name string, p access.Permission) *broker.Rights {
	p.User, p.VHost = name, "/"
	require.NoError(x.t, x.b.Accounts.PutUser(access.User{Name: name}))
	require.NoError(x.t, x.b.Accounts.SetPermission(p))
	return x.b.RightsOf(name, "/")
}
