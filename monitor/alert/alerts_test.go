package alert

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker/deadline"
)

// TestStormIsTwoPosts: a million misses in a queue are reported when they begin and when they are
// over, with counts.
func TestStormIsTwoPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for i := range int64(1_000_000) {
			var stats Stats
			stats.Add(deadline.FromUnixMilli(10_000+i), time.Duration(i%50)*time.Millisecond)
			s.Record(Event{Kind: DeadlineMissed, VHost: "/", Queue: "orders", Action: "dead_lettered", Stats: stats})
			if i%1_000 == 0 {
				time.Sleep(500 * time.Millisecond) // 500 s in all
			}
		}
		time.Sleep(10 * time.Minute)
		posts := s.receiver.got()
		require.Len(t, posts, 2)
		first, last := posts[0], posts[1]
		require.Equal(t, "4", first.Version)
		identity := map[string]string{"alertname": "CurfewDeadlineMissed", "vhost": "/", "queue": "orders"}
		require.Equal(t, identity, first.GroupLabels)
		require.Equal(t, `{}/{rule="default"}:{alertname="CurfewDeadlineMissed", queue="orders", vhost="/"}`, first.GroupKey)
		require.Equal(t, map[string]string{"alertname": "CurfewDeadlineMissed", "vhost": "/", "queue": "orders", "instance": "here", "severity": "warning"}, first.CommonLabels)
		require.Equal(t, "http://curfew.example", first.ExternalURL)
		require.Equal(t, "1970-01-01T00:00:10.000Z", first.CommonAnnotations["first_deadline"])
		require.Equal(t, "dead_lettered", first.CommonAnnotations["action"])
		require.Len(t, first.Alerts, 1)
		require.True(t, first.Alerts[0].EndsAt.IsZero())

		require.Equal(t, "resolved", last.Status)
		require.Equal(t, "1000000", last.CommonAnnotations["count"])
		require.Equal(t, `messages expired unconsumed: over, 1000000 in queue "orders" of vhost "/"`, last.CommonAnnotations["summary"])
		require.Equal(t, "1970-01-01T00:16:49.999Z", last.CommonAnnotations["last_deadline"])
		require.Equal(t, "49ms", last.CommonAnnotations["worst_lateness"])
		require.Equal(t, first.Alerts[0].Fingerprint, last.Alerts[0].Fingerprint)
		require.False(t, last.Alerts[0].EndsAt.IsZero())
		require.Len(t, s.log.FilterField(zap.String("event", "deadline_missed")).All(), 2)
		require.Empty(t, s.tracker.incidents)
	})
}

// TestEachQueueIsToldAtOnce: another queue does not wait for the ones that are told already, and
// what goes on is not told again.
func TestEachQueueIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		told := func() (list []string) {
			for _, p := range s.receiver.got() {
				list = append(list, p.Status+" "+p.GroupLabels["alertname"]+" "+p.GroupLabels["queue"]+" "+p.CommonAnnotations["count"])
			}
			return list
		}
		late := missed("a", 1)
		late.Kind = DeadlineFiredLate
		for _, e := range []Event{missed("a", 2), missed("a", 3), late} {
			s.Record(e)
		}
		time.Sleep(settle)
		synctest.Wait()
		require.ElementsMatch(t, []string{"firing CurfewDeadlineMissed a 5", "firing CurfewDeadlineFiredLate a 1"}, told())
		s.Record(missed("b", 1))
		time.Sleep(settle)
		synctest.Wait()
		require.Equal(t, "firing CurfewDeadlineMissed b 1", told()[2])
		for range 9 * 60 * 2 {
			time.Sleep(30 * time.Second)
			s.Record(missed("a", 1000))
		}
		require.ElementsMatch(t, []string{"resolved CurfewDeadlineFiredLate a 1", "resolved CurfewDeadlineMissed b 1"}, told()[3:])
		time.Sleep(2 * time.Minute)
		require.Equal(t, "resolved CurfewDeadlineMissed a 1080005", told()[5])
	})
}

// TestFlood: twenty queues are told at once, the worst first, and how many more there are. The
// others follow, twenty a minute, while they fire.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		again := func() {
			for i := range int64(100) {
				s.Record(missed(fmt.Sprint(i), 1+i))
			}
		}
		again()
		time.Sleep(settle + time.Second)
		posts := s.receiver.got()
		require.Len(t, posts, perMinute+1)
		require.Equal(t, "99", posts[0].GroupLabels["queue"], "the worst comes first")
		require.Equal(t, "CurfewManyAlerts", posts[perMinute].GroupLabels["alertname"])
		require.Equal(t, "80", posts[perMinute].CommonAnnotations["count"])
		require.Equal(t, 80.0, testutil.ToFloat64(s.metrics.suppressed.WithLabelValues("rate_limit")))
		time.Sleep(28 * time.Second)
		again()
		time.Sleep(31 * time.Second)
		require.InDelta(t, 2*perMinute+1, len(s.receiver.got()), 1)
		time.Sleep(10 * time.Minute)
		fired := make(map[string]int)
		for _, p := range s.receiver.got() {
			fired[p.Status]++
		}
		require.Equal(t, fired["firing"], fired["resolved"], "whoever was sent the beginning is sent the end")
		require.Less(t, fired["firing"], 60, "what was over before its turn is not told")
		last := s.receiver.got()[len(s.receiver.got())-1]
		require.Equal(t, "resolved", last.Status)
		require.Empty(t, s.tracker.incidents)
	})
}

// TestHeldIsCountedOnce: what is held is looked at every 30 s; it counts once and is
// over when it is no longer held.
func TestHeldIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		e := missed("a", 3)
		e.Kind = HeldPastDeadline
		s.Record(e)
		for i := range int64(10) {
			time.Sleep(30 * time.Second)
			e.Again, e.WorstMillis = true, 30_000*(i+1)
			s.Record(e)
		}
		posts := s.receiver.got()
		require.Len(t, posts, 1)
		time.Sleep(3 * time.Minute)
		posts = s.receiver.got()
		require.Len(t, posts, 2)
		require.Equal(t, "resolved", posts[1].Status)
		require.Equal(t, "3", posts[1].CommonAnnotations["count"])
		require.Equal(t, "5m0s", posts[1].CommonAnnotations["worst_lateness"])
		s.Record(e) // forgotten by now: it counts again
		time.Sleep(time.Minute)
		require.Equal(t, "3", s.receiver.got()[2].CommonAnnotations["count"])
	})
}

func TestDegradedIsToldUntilRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.Degraded("a blip")
		time.Sleep(100 * time.Millisecond)
		s.Restored()
		time.Sleep(time.Minute)
		require.Empty(t, s.receiver.got(), "shorter than a second")

		s.Degraded("connection refused")
		time.Sleep(5 * time.Hour)
		posts := s.receiver.got()
		require.Len(t, posts, 1)
		require.Contains(t, posts[0].CommonAnnotations["summary"], "connection refused")
		s.Restored()
		synctest.Wait()
		posts = s.receiver.got()
		require.Len(t, posts, 2)
		require.Equal(t, "resolved", posts[1].Status)
		s.Restored()
		time.Sleep(time.Hour)
		require.Len(t, s.receiver.got(), 2)
	})
}

func TestIncidentsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for i := range maxIncidents + 500 {
			s.Record(missed(strings.Repeat("q", i+1), 1))
		}
		require.LessOrEqual(t, len(s.List()), maxIncidents+1)
		time.Sleep(5 * time.Second)
		first := s.receiver.got()[0]
		require.Equal(t, otherQueues, first.GroupLabels["queue"])
		require.Equal(t, "500", first.CommonAnnotations["count"])
		s.AtRisk(Risk{VHost: "/", Queue: "no room", Count: 1})
		require.Equal(t, 1.0, testutil.ToFloat64(s.metrics.suppressed.WithLabelValues("overflow")))
	})
}

func TestWebhookIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.receiver.answer(
			answer{err: errors.New("connection refused")},
			answer{code: 503, header: http.Header{"Retry-After": {"7"}}},
			answer{code: 429})
		s.Record(missed("a", 1))
		time.Sleep(6 * time.Second)
		require.Empty(t, s.receiver.got(), "it was asked to wait")
		time.Sleep(10 * time.Second)
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
			time.Sleep(30 * time.Second)
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
		time.Sleep(10 * time.Minute)
		health := s.Health()
		require.Len(t, health, 1)
		require.Contains(t, health[0], "webhook has been failing for 9m")
		require.NotContains(t, health[0], "secret")
		time.Sleep(2 * time.Hour)
		require.LessOrEqual(t, s.receiver.tried(), 2*60)
		require.Equal(t, 2.0, s.metric(t, "curfew_alert_notifications_total", "failed"), "fired and resolved")
		failures := s.log.FilterMessage("alert not delivered").All()
		require.Len(t, failures, 2)
		text := failures[0].ContextMap()["error"].(string)
		require.Contains(t, text, "connection refused")
		require.NotContains(t, text, "secret", "the URL is not logged")
	})
}

func TestSlowWebhookIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.receiver.block = make(chan struct{})
		o := s.delivery.channels[0].channel.(*outbox)
		put := func(queue string) { o.put(&alert{key: key{kind: DeadlineMissed, queue: queue}, rule: everything}) }
		put("q")
		synctest.Wait() // it is being sent
		for i := range maxQueued + 25 {
			put(fmt.Sprint(i))
			put("0") // of each alert only the newest waits
		}
		require.Equal(t, float64(maxQueued), s.metric(t, "curfew_alert_queue_length", ""))
		require.Equal(t, 25.0, s.metric(t, "curfew_alert_notifications_total", "dropped"))
		close(s.receiver.block)
		time.Sleep(time.Hour)
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
		cancel()
		require.NoError(t, a.Run(ctx))
		require.Equal(t, int64(3), logs.All()[0].ContextMap()["count"])
	})
}

func TestNilAlerts(t *testing.T) {
	var a *Alerts
	a.Record(missed("a", 1))
	a.Degraded("x")
	a.Restored()
	a.AtRisk(Risk{})
	a.Safe("/", "a")
	require.Empty(t, a.Health())
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
