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

// TestStormIsAFewPosts: a million misses in 300 queues are reported by their orders of
// magnitude and at the end, each time in one post with the worst queues.
func TestStormIsAFewPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for i := range int64(1_000_000) {
			var stats Stats
			stats.Add(deadline.FromUnixMilli(10_000+i), time.Duration(i%50)*time.Millisecond)
			queue := "orders"
			if i%2 == 1 {
				queue = fmt.Sprint("q", i%300)
			}
			s.Record(Event{Kind: DeadlineMissed, VHost: "/", Queue: queue, Action: "dead_lettered", Stats: stats})
			if i%1_000 == 0 {
				time.Sleep(500 * time.Millisecond) // 500 s in all
			}
		}
		time.Sleep(10 * time.Minute)
		posts := s.receiver.got()
		require.LessOrEqual(t, len(posts), 6)
		first, last := posts[0], posts[len(posts)-1]
		require.Equal(t, "4", first.Version)
		require.Equal(t, map[string]string{"alertname": "CurfewDeadlineMissed"}, first.GroupLabels)
		require.Equal(t, `{}/{rule="default"}:{alertname="CurfewDeadlineMissed"}`, first.GroupKey)
		require.Equal(t, map[string]string{"alertname": "CurfewDeadlineMissed", "action": "dead_lettered", "vhost": "/", "instance": "here", "severity": "warning"}, first.CommonLabels)
		require.Equal(t, "http://curfew.example", first.ExternalURL)
		require.Len(t, first.Alerts, maxMessageAlerts)
		require.Equal(t, 151-maxMessageAlerts, first.TruncatedAlerts)
		require.Equal(t, "orders", first.Alerts[0].Labels["queue"], "the worst comes first")
		require.Equal(t, "1970-01-01T00:00:10.000Z", first.Alerts[0].Annotations["first_deadline"])
		require.Equal(t, "48ms", first.Alerts[0].Annotations["worst_lateness"])
		require.True(t, first.Alerts[0].EndsAt.IsZero())
		require.Contains(t, first.CommonAnnotations["summary"], `in 151 queues, most of them`)
		require.Equal(t, 4, strings.Count(first.CommonAnnotations["top_queues"], ", "), "five queues are named")

		require.Equal(t, "resolved", last.Status)
		require.Equal(t, "1000000", last.CommonAnnotations["count"])
		require.Contains(t, last.CommonAnnotations["summary"], `over, 1000000 in 151 queues, most of them 500000 in queue "orders" of vhost "/", `)
		require.Equal(t, "1970-01-01T00:16:49.999Z", last.CommonAnnotations["last_deadline"])
		require.Equal(t, "49ms", last.CommonAnnotations["worst_lateness"])
		require.Equal(t, first.Alerts[0].Fingerprint, last.Alerts[0].Fingerprint)
		require.False(t, last.Alerts[0].EndsAt.IsZero())

		require.Len(t, s.log.FilterField(zap.String("event", "deadline_missed")).All(), len(posts))
		require.Empty(t, s.tracker.incidents)
		require.Empty(t, s.tracker.groups)
	})
}

// TestSteadyMissesAreRepeated: what goes on unchanged is reported again every four hours
// only, and when it has grown tenfold.
func TestSteadyMissesAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.Record(missed("a", 1_000_000))
		for range 9 * 60 * 2 {
			time.Sleep(30 * time.Second)
			s.Record(missed("a", 1))
		}
		posts := s.receiver.got()
		require.Len(t, posts, 3)
		require.Equal(t, "1000480", posts[1].CommonAnnotations["count"])
		s.Record(missed("b", 1))
		time.Sleep(59 * time.Second)
		posts = s.receiver.got()
		require.Len(t, posts, 4, "another queue is news, within the group interval")
		require.Len(t, posts[3].Alerts, 2)
		time.Sleep(time.Hour)
		require.Equal(t, "resolved", s.receiver.got()[len(s.receiver.got())-1].Status)
	})
}

func TestGroups(t *testing.T) {
	late := missed("a", 1)
	late.Kind = DeadlineFiredLate
	other := missed("c", 4)
	other.VHost = "shop"
	for by, want := range map[string][]string{
		"event": {"CurfewDeadlineMissed 10", "CurfewDeadlineFiredLate 1"},
		"vhost": {"CurfewDeadlineMissed / 6", "CurfewDeadlineMissed shop 4", "CurfewDeadlineFiredLate / 1"},
		"queue": {"CurfewDeadlineMissed / a 5", "CurfewDeadlineMissed / b 1", "CurfewDeadlineMissed shop c 4", "CurfewDeadlineFiredLate / a 1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := run(t, func(o *Options) { o.File = groupedBy(t, by) })
			for _, e := range []Event{missed("a", 2), missed("a", 3), missed("b", 1), late, other, {Kind: DeadlineMissed, Queue: "d"}} {
				s.Record(e)
			}
			time.Sleep(2 * time.Second)
			var got []string
			for _, p := range s.receiver.got() {
				g := p.GroupLabels
				got = append(got, strings.Join(strings.Fields(strings.Join([]string{g["alertname"], g["vhost"], g["queue"], p.CommonAnnotations["count"]}, " ")), " "))
			}
			require.ElementsMatch(t, want, got, by)
		})
	}
}

// TestSingles: with group none every miss is reported, up to the rate limit; the rest is
// told in one digest.
func TestSingles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.File = groupedBy(t, "none") })
		require.True(t, s.Each("/", "a"))
		for i := range int64(1000) {
			e := missed("a", 1)
			e.LastDeadlineAt = 5000 + i
			s.Record(e)
		}
		time.Sleep(time.Minute)
		posts := s.receiver.got()
		require.Len(t, posts, burst+1)
		keys := map[string]bool{}
		for _, p := range posts[:burst] {
			require.Equal(t, "1", p.CommonAnnotations["count"])
			keys[p.Alerts[0].Annotations["last_deadline"]] = true
		}
		require.Len(t, keys, burst)
		require.Equal(t, fmt.Sprint(1000-burst), posts[burst].CommonAnnotations["count"])
		require.Equal(t, float64(1000-burst), testutil.ToFloat64(s.metrics.suppressed.WithLabelValues("rate_limit")))
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
		require.Empty(t, s.receiver.got(), "shorter than the group wait")

		s.Degraded("connection refused")
		time.Sleep(5 * time.Hour)
		posts := s.receiver.got()
		require.Len(t, posts, 2, "and repeated after four hours")
		require.Contains(t, posts[0].CommonAnnotations["summary"], "connection refused")
		s.Restored()
		time.Sleep(time.Second)
		posts = s.receiver.got()
		require.Len(t, posts, 3)
		require.Equal(t, "resolved", posts[2].Status)
		s.Restored()
		time.Sleep(time.Hour)
		require.Len(t, s.receiver.got(), 3)
	})
}

func TestGroupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		for i := range maxIncidents + 500 {
			s.Record(missed(strings.Repeat("q", i+1), 1))
		}
		require.LessOrEqual(t, len(s.tracker.incidents), maxIncidents+1)
		s.Degraded("still told")
		time.Sleep(5 * time.Second)
		posts := s.receiver.got()
		require.Len(t, posts, 2)
		for _, p := range posts {
			if p.GroupLabels["alertname"] == "CurfewDeadlineMissed" {
				require.Equal(t, otherQueues, p.Alerts[0].Labels["queue"])
				require.Equal(t, "500", p.Alerts[0].Annotations["count"])
				require.Equal(t, fmt.Sprint(maxIncidents+500), p.CommonAnnotations["count"])
			}
		}
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

func TestSlowWebhookDropsAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, nil)
		s.receiver.block = make(chan struct{})
		o := s.delivery.channels[0].channel.(*outbox)
		put := func(queue string) {
			n := newNotification(everything, groupKey{kind: DeadlineMissed, queue: queue}, time.Now())
			n.add(alert{key: key{kind: DeadlineMissed, queue: queue}})
			o.put(n)
		}
		put("q")
		synctest.Wait() // it is being sent
		for i := range maxQueued + 25 {
			put(fmt.Sprint(i))
			put("0") // of each group only the newest waits
		}
		require.Equal(t, float64(maxQueued), s.metric(t, "curfew_alert_queue_length", ""))
		require.Equal(t, 25.0, s.metric(t, "curfew_alert_notifications_total", "dropped"))
		close(s.receiver.block)
		time.Sleep(time.Hour)
		posts := s.receiver.got()
		require.Len(t, posts, maxQueued+2)
		require.Equal(t, "CurfewNotificationsDropped", posts[1].CommonLabels["alertname"])
		require.Equal(t, "25", posts[1].CommonAnnotations["count"])
		require.Zero(t, s.metric(t, "curfew_alert_queue_length", ""))
	})
}

// TestRateLimit: after the first ten, a sink gets one notification a second.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.File = groupedBy(t, "queue") })
		for i := range 30 {
			s.Record(missed(fmt.Sprint(i), 1))
		}
		time.Sleep(time.Second + 5*time.Second + time.Millisecond)
		require.Len(t, s.receiver.got(), burst+5)
		time.Sleep(20 * time.Second)
		require.Len(t, s.receiver.got(), 30)
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
	require.False(t, a.Each("/", "a"))
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
