package monitor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/monitor/schedule"
)

// poll takes a message every so often until stopped.
func (x *testBroker) poll(q *broker.Queue, every time.Duration) (stop func()) {
	ticks := time.NewTicker(every)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticks.C:
				q.Messages.Get(true, func(*broker.Delivery) {})
			case <-done:
				return
			}
		}
	}()
	return func() { ticks.Stop(); close(done); <-ended }
}

func only(t *testing.T, all []deadline.Forecast) deadline.Forecast {
	t.Helper()
	require.Len(t, all, 1)
	return all[0]
}

// TestForecastComesTrue: a queue is served at 100 messages a second and has more than it can serve in time. What is forecast of it then
// happens.
func TestForecastComesTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		q := x.declare("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		dlq := x.declare("dlq", nil)
		stop := x.poll(q, 10*time.Millisecond)
		defer stop()
		for range 3000 {
			x.publish("q", 20*time.Second)
		}
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		f := only(t, x.monitor.Forecasts())
		assert.InDelta(t, 100, f.Rate, 5)
		assert.InDelta(t, 2500, f.Deadlines, 25)
		assert.InDelta(t, 1000, f.AtRisk, 50)
		assert.InDelta(t, 15_000, f.FirstMiss-time.Now().UnixMilli(), 100)
		now := time.Now().UnixMilli()
		shares := x.monitor.Shares([]int64{now, now + 10_000, now + 20_000}, nil)
		assert.Len(t, shares, 2)
		assert.Zero(t, shares[0], "nothing is due there")
		assert.InDelta(t, 0.4, shares[1].AtRisk+shares[1].NearlyDue, 0.03)
		time.Sleep(time.Minute)
		assert.InDelta(t, f.AtRisk, ready(dlq), 0.05*float64(f.AtRisk))
		assert.Empty(t, x.monitor.Forecasts(), "no deadline waits")
	})
}

// TestAtRiskIsTakenBack: a queue nobody reads is at risk once half of the time to live of the first to miss is gone, and no
// longer when its messages have been read.
func TestAtRiskIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		q := x.declare("q", nil)
		for range 7 {
			x.publish("q", time.Minute)
		}
		time.Sleep(28 * time.Second)
		f := only(t, x.monitor.Forecasts())
		assert.Equal(t, 7, f.AtRisk)
		assert.False(t, f.NearlyDue, "there is time yet for somebody to come")
		time.Sleep(15 * time.Second)
		assert.True(t, only(t, x.monitor.Forecasts()).NearlyDue)

		for range 7 {
			x.get(q, true)
		}
		time.Sleep(10 * time.Minute)
		assert.Empty(t, x.monitor.Forecasts())
	})
}

// TestWhatIsMeantIsNotAtRisk: what will expire where that is no loss has a number of its own, everywhere.
func TestWhatIsMeantIsNotAtRisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		x.declare("orders", nil)
		x.declare("readings", nil)
		for range 5 {
			x.publish("orders", time.Minute)
		}
		for range 3 {
			x.publish("readings", 50*time.Second)
		}
		time.Sleep(40*time.Second + time.Millisecond)
		synctest.Wait()
		all := x.monitor.Forecasts()
		require.Len(t, all, 2)
		orders, readings := all[0], all[1]
		require.Equal(t, []any{"orders", 5, 0, true}, []any{orders.Queue, orders.AtRisk, orders.AsMeant, orders.NearlyDue})
		require.Equal(t, []any{"readings", 0, 3, false}, []any{readings.Queue, readings.AtRisk, readings.AsMeant, readings.NearlyDue})
		now := time.Now().UnixMilli()
		require.Equal(t, []monitor.Share{{}, {NearlyDue: 1}}, x.monitor.Shares([]int64{now, now + 15_000, now + 30_000}, nil))
	})
}

// TestForecastsLeaveOutWhatHasExpired since they were made.
func TestForecastsLeaveOutWhatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		for name, ttl := range map[string]time.Duration{"orders": time.Minute, "mails": 30 * time.Second} {
			x.declare(name, nil)
			x.publish(name, ttl)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		all := x.monitor.Forecasts()
		require.Equal(t, []any{2, "mails", 1}, []any{len(all), all[0].Queue, all[0].AtRisk})
		time.Sleep(20*time.Second + 500*time.Millisecond) // the mail has expired since the last forecast, or is not in it
		require.Equal(t, "orders", x.monitor.Forecasts()[0].Queue)
	})
}

// slowSurvey is a primary whose queues take a while to look at.
type slowSurvey struct{ broker.Deadlines }

func (p slowSurvey) Survey(samples int, fn func(*deadline.Survey)) {
	time.Sleep(2 * time.Second)
	p.Deadlines.Survey(samples, fn)
}

// TestRareForecastsAreNoHungLoop: after a look that took long, the next one is a while away, and nothing is wrong.
func TestRareForecastsAreNoHungLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := broker.New(broker.Options{Clock: func() int64 { return time.Now().UnixNano() }})
		require.NoError(t, err)
		m, err := schedule.New(schedule.Options{Primary: slowSurvey{b.Deadlines()}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = m.Run(ctx)
		}()
		for range 100 {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Empty(t, m.Health().Reasons)
		}
		cancel()
		<-ended
		require.NoError(t, b.Close())
	})
}

// TestNoRiskWhileClientsReconnect: after a start nobody consumes for some seconds, which says nothing.
func TestNoRiskWhileClientsReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		x.declare("q", nil)
		x.publish("q", 20*time.Second)
		time.Sleep(13 * time.Second)
		synctest.Wait()
		f := only(t, x.monitor.Forecasts())
		require.Equal(t, 1, f.AtRisk)
		require.False(t, f.NearlyDue, "though more than half of its time is used up")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.True(t, only(t, x.monitor.Forecasts()).NearlyDue)
	})
}
