package broker_test

import (
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

// withOffset runs fn in virtual time with a broker whose clock was that far ahead of the
// wall clock when it began; fn may set the wall clock.
func withOffset(t *testing.T, ahead time.Duration, o broker.Options, fn func(x *testBroker, wall *time.Duration)) {
	synctest.Test(t, func(t *testing.T) {
		var set time.Duration
		o.Clock = func() int64 { return wallClock() + int64(ahead) }
		o.Wall = func() int64 { return wallClock() + int64(set) }
		fn(newTestBroker(t, o), &set)
	})
}

var offsets = []time.Duration{0, 12 * time.Hour, -12 * time.Hour, 300 * time.Microsecond, 12*time.Hour - 1}

// TestAbsoluteTimesAreTheWallClocks: after a run with a wrong wall clock Curfew's own is
// off. What users give and read is what the wall clock says.
func TestAbsoluteTimesAreTheWallClocks(t *testing.T) {
	for _, ahead := range offsets {
		var r recorded
		withOffset(t, ahead, broker.Options{Expiries: r.stream()}, func(x *testBroker, _ *time.Duration) {
			start := time.Now()
			x.queue("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
			dead, scheduled, replies := x.queue("dead", nil), x.queue("scheduled", nil), x.queue("replies", nil)
			until := start.Add(2 * time.Second).UnixMilli()
			x.publish("", "q", "past", "", amqp.Table{"x-expires-at": start.UnixMilli() - 1})
			synctest.Wait()
			assert.Equal(t, []string{"past"}, x.drain(dead), "ahead by %s", ahead)
			x.publish("", "q", "absolute", "", amqp.Table{"x-expires-at": until})
			x.publish("", "scheduled", "scheduled", "", amqp.Table{"x-scheduled-enqueue-time": amqp.Timestamp(start.Unix() + 1)})
			p := amqp.Properties{ReplyTo: "replies", Headers: amqp.Table{"x-expires-at": until, "x-expiry-receipt": true}}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte("receipt")})
			require.NoError(t, err)
			x.p.Flush(nil)

			page, _ := x.vh.Delayed(0, 1)
			require.Len(t, page, 1)
			assert.Equal(t, (start.Unix()+1)*1000, x.b.UnixMillis(page[0].Ref.Deadline))
			refs := x.deadlines()
			require.Len(t, refs, 2)
			for _, ref := range refs {
				assert.Equal(t, until, x.b.UnixMillis(ref.Deadline))
				assert.Equal(t, ref.Deadline, x.b.Instant(until))
			}
			assert.Equal(t, start.UnixMilli(), x.b.UnixMillis(x.b.Now()))

			after(2*time.Second - time.Millisecond)
			assert.Equal(t, []string{"scheduled"}, x.drain(scheduled))
			assert.Equal(t, deadline.NotDue, x.expire(refs)[0].Outcome, "not early")
			after(time.Millisecond + time.Millisecond)
			assert.Equal(t, deadline.Expired, x.expire(refs)[0].Outcome, "ahead by %s", ahead)
			synctest.Wait()
			m, ok := x.get(dead, true)
			require.True(t, ok)
			assert.Equal(t, amqp.Timestamp(time.Now().Unix()), m.properties.Headers["x-death"].([]any)[0].(amqp.Table)["time"])
			m, ok = x.get(replies, true)
			require.True(t, ok)
			assert.Equal(t, amqp.Timestamp(time.Now().Unix()), m.properties.Timestamp)
			assert.Equal(t, time.UnixMilli(until).UTC().Format("2006-01-02T15:04:05.000Z"), receiptIn(t, m)["deadline"])
			due, at := r.all[len(r.all)-1].Wall()
			assert.InDelta(t, until*1000, int64(due), 1000)
			assert.InDelta(t, time.Now().UnixMicro(), int64(at), 1000)
		})
	}
}

// TestAbsoluteTimesFollowTheWallClock: each is converted by what the wall clock says when
// it is given. Times to live do not notice.
func TestAbsoluteTimesFollowTheWallClock(t *testing.T) {
	withOffset(t, 0, broker.Options{}, func(x *testBroker, set *time.Duration) {
		x.queue("q", nil)
		*set = 12 * time.Hour
		assert.Equal(t, -12*time.Hour, x.b.ClockOffset())
		x.publish("", "q", "wrong", "", amqp.Table{"x-expires-at": time.Now().Add(13 * time.Hour).UnixMilli()})
		*set = 0
		x.publish("", "q", "right", "", amqp.Table{"x-expires-at": time.Now().Add(time.Hour).UnixMilli()})
		x.publish("", "q", "relative", "3600000", nil)
		refs := x.deadlines()
		require.Len(t, refs, 3)
		for _, ref := range refs {
			assert.Equal(t, deadline.At(time.Now().Add(time.Hour)), ref.Deadline, "an hour ahead by the clock it was given by")
		}
	})
}

func TestAbsoluteTimesHaveLimitsByTheWallClock(t *testing.T) {
	for _, ahead := range offsets {
		withOffset(t, ahead, broker.Options{}, func(x *testBroker, _ *time.Duration) {
			x.queue("q", nil)
			tenYears := time.Now().UnixMilli() + policy.MaxTTLMillis
			p := amqp.Properties{Headers: amqp.Table{"x-expires-at": tenYears - 1}}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
			assert.NoError(t, err)
			p.Headers["x-expires-at"] = tenYears + 1
			_, err = x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
			assert.EqualValues(t, 406, code(err))
			x.p.Flush(nil)
		})
	}
}

func TestNoInstantStaysNone(t *testing.T) {
	withOffset(t, 12*time.Hour, broker.Options{}, func(x *testBroker, _ *time.Duration) {
		assert.Zero(t, x.b.UnixMillis(0))
		assert.Zero(t, x.b.Instant(0))
	})
	withOffset(t, -12*time.Hour, broker.Options{}, func(x *testBroker, _ *time.Duration) {
		assert.EqualValues(t, 1, x.b.Instant(1), "an instant, and long past")
	})
}
