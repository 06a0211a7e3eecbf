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
)

// surveyOf returns one queue's survey, copied.
func (x *testBroker) surveyOf(name string, samples int) (found deadline.Survey) {
	x.b.Deadlines().Survey(samples, func(s *deadline.Survey) {
		if s.Name == name {
			found = *s
			found.Samples = append([]deadline.Sample(nil), s.Samples...)
		}
	})
	return found
}

func TestSurveySaysHowAQueueStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", amqp.Table{"x-max-priority": 1})
		x.queue("other", nil)
		for range 10 {
			x.publish("", "q", "m", "", nil)
		}
		x.publish("", "q", "due", "5000", nil)
		x.get(q, true)
		_, err := q.Messages.Get(false, func(*broker.Delivery) {})
		require.NoError(t, err)

		s := x.surveyOf("q", 100)
		assert.Equal(t, 9, s.Ready)
		assert.Equal(t, uint64(2), s.Delivered)
		assert.Equal(t, uint64(2), s.Polled)
		require.Len(t, s.Samples, 9)
		last := s.Samples[8]
		assert.Equal(t, 8, last.Ahead)
		assert.Equal(t, deadline.At(time.Now().Add(5*time.Second)), last.Ref.Deadline)
		assert.Zero(t, s.Samples[7].Ref.Deadline)
		ttl, ok := x.b.Deadlines().TimeToLive(last.Ref)
		assert.True(t, ok)
		assert.Equal(t, deadline.Millis(5000), ttl)
		_, ok = x.b.Deadlines().TimeToLive(s.Samples[0].Ref)
		assert.False(t, ok, "it has no deadline")

		s = x.surveyOf("q", 3)
		assert.Equal(t, 3, s.Step)
		require.Len(t, s.Samples, 3)
		assert.Equal(t, 6, s.Samples[2].Ahead)
		assert.Zero(t, x.surveyOf("other", 3).Ready)
		assert.Equal(t, 9, s.Ready, "nothing was taken")
	})
}

func TestSurveyLeavesDelayedMessagesOut(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.queue("q", nil)
		x.publish("", "q", "later", "", amqp.Table{"x-delay": int32(500)})
		var names []string
		x.b.Deadlines().Survey(3, func(s *deadline.Survey) { names = append(names, s.Name) })
		assert.Equal(t, []string{"q"}, names, "the instant a delayed message is due is not a deadline that somebody could miss")
	})
}
