package incident

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestWebhookIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.receiver.answer(
			answer{err: errors.New("connection refused")},
			answer{code: 503, header: http.Header{"Retry-After": {"7"}}},
			answer{code: 429})
		s.Record(missed("a", 1))
		pass(10 * time.Second)
		require.Empty(t, s.receiver.got(), "it was asked to wait")
		pass(10 * time.Second)
		require.Len(t, s.receiver.got(), 1)
		require.Equal(t, 4, s.receiver.tries)
		require.Equal(t, 1.0, s.metric(t, "curfew_alert_notifications_total", "sent"))
	})
}

func TestWebhookIsNotTriedAgainInVain(t *testing.T) {
	for _, code := range []int{301, 307, 400, 404} {
		synctest.Test(t, func(t *testing.T) {
			s := run(t, nil)
			s.receiver.answer(answer{code: code, header: http.Header{"Location": {"http://elsewhere.example"}}})
			s.Record(missed("a", 1))
			pass(30 * time.Second)
			require.Equal(t, 1, s.receiver.tried(), "%d", code)
			require.Equal(t, 1.0, s.metric(t, "curfew_alert_notifications_total", "failed"))
		})
	}
}

func TestDeadWebhookIsGivenUpAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for range 200 {
			s.receiver.answer(answer{err: errors.New("connection refused")})
		}
		s.Record(missed("a", 1))
		pass(10 * time.Minute)
		wrong := s.wrong()
		require.Len(t, wrong, 1)
		require.Contains(t, wrong[0], "webhook has been failing for 9 min")
		require.NotContains(t, wrong[0], "secret")
		pass(2 * time.Hour)
		require.LessOrEqual(t, s.receiver.tried(), 4*60, "the incident, that it is told to nobody, and the end of both")
		require.GreaterOrEqual(t, s.metric(t, "curfew_alert_notifications_total", "failed"), 2.0, "fired and resolved")
		failures := s.log.FilterMessage("notification not delivered").All()
		require.NotEmpty(t, failures)
		text := failures[0].ContextMap()["error"].(string)
		require.Contains(t, text, "connection refused")
		require.NotContains(t, text, "secret", "the URL is not logged")
	})
}

func TestSlowWebhookIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.receiver.block = make(chan struct{})
		o := s.delivery.outboxes[0]
		put := func(queue string) {
			o.put(&notice{Incident: Incident{ID: queue}, rule: everything, names: map[string]string{"queue": queue}})
		}
		put("q")
		synctest.Wait() // it is being sent
		for i := range maxQueued + 25 {
			put(fmt.Sprint(i))
			put("0") // of each incident only the newest waits
		}
		require.Equal(t, float64(maxQueued), s.metric(t, "curfew_alert_queue_length", ""))
		require.Equal(t, 25.0, s.metric(t, "curfew_alert_notifications_total", "dropped"))
		close(s.receiver.block)
		pass(time.Hour)
		require.Len(t, s.receiver.got(), maxQueued+1)
		require.Zero(t, s.metric(t, "curfew_alert_queue_length", ""))
	})
}

func TestUntoldIsLoggedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		a, err := New(Options{Log: zap.New(core)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		a.Record(missed("a", 3))
		a.judge()
		cancel()
		require.NoError(t, a.Run(ctx))
		require.Equal(t, int64(3), logs.All()[0].ContextMap()["count"])
	})
}

func TestOptions(t *testing.T) {
	for _, bad := range []string{"hooks.example", "ftp://hooks.example/x", "http://", "http://[::1", "/path"} {
		_, err := New(Options{URLs: []string{"webhook+" + bad}})
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "hooks.example", "it may hold a secret")
	}
	reg := prometheus.NewRegistry()
	_, err := New(Options{Registerer: reg})
	require.NoError(t, err)
	_, err = New(Options{Registerer: reg})
	require.ErrorContains(t, err, "register")
}

func TestRecordDoesNotAllocate(t *testing.T) {
	a, err := New(Options{})
	require.NoError(t, err)
	e := missed("orders", 1)
	a.Record(e)
	require.Zero(t, testing.AllocsPerRun(1000, func() { a.Record(e) }))
}

func BenchmarkRecord(b *testing.B) {
	a, _ := New(Options{})
	e := missed("orders", 1)
	b.ReportAllocs()
	for b.Loop() {
		a.Record(e)
	}
}

// TestAlertmanagerBecomesAWebhook: what reminds an Alertmanager says nothing to the sink that has its name now.
func TestAlertmanagerBecomesAWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		o := s.delivery.outboxes[0]
		o.put(&notice{})
		synctest.Wait()
		require.Empty(t, s.receiver.got())
		require.Nil(t, o.status().Trouble)
	})
}

// TestAlertmanagerTakesOne: however many incidents begin while an Alertmanager is down, it is sent once what fires then; with nothing to say, nothing.
func TestAlertmanagerTakesOne(t *testing.T) {
	o := &outbox{sink: &manager{firing: func() []*notice { return nil }}, length: prometheus.NewGauge(prometheus.GaugeOpts{}), arrived: make(chan struct{}, 1)}
	for i := range 10 {
		o.put(&notice{Incident: Incident{ID: fmt.Sprint(i)}, rule: everything})
		o.put(&notice{})
	}
	o.put(&notice{Incident: Incident{Condition: testCondition, ID: "test"}, rule: everything})
	require.Equal(t, 11, o.status().Queued, "they are there for another sink of that name")
	require.Equal(t, "0", o.take().ID)
	require.Equal(t, "test", o.take().ID)
	require.Nil(t, o.take())
	require.ErrorIs(t, o.send(t.Context(), &notice{}), errNothing) // it has no address
}
