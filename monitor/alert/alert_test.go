package alert

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a webhook's other end without a network, so that time can be virtual.
type receiver struct {
	mu      sync.Mutex
	posts   []message
	tries   int
	answers []answer // of the next tries; then 200
	block   chan struct{}
}

type answer struct {
	code   int
	header http.Header
	err    error
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	a := answer{code: http.StatusOK}
	if len(r.answers) > 0 {
		a, r.answers = r.answers[0], r.answers[1:]
	}
	if a.err != nil {
		return nil, a.err
	}
	if a.code/100 == 2 {
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		r.posts = append(r.posts, m)
	}
	return &http.Response{StatusCode: a.code, Header: a.header, Body: http.NoBody, Request: req}, nil
}

// got are the posts so far.
func (r *receiver) got() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.posts
}

func (r *receiver) tried() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries
}

// answer has the next tries answered so.
func (r *receiver) answer(a ...answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, a...)
}

type setup struct {
	*Alerts
	receiver *receiver
	log      *observer.ObservedLogs
	registry *prometheus.Registry
}

// run starts alerts in the bubble of the test.
func run(t *testing.T) setup {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	s := setup{receiver: &receiver{}, log: logs, registry: prometheus.NewRegistry()}
	var err error
	s.Alerts, err = New(Options{
		WebhookURL: "http://hooks.example/secret", Instance: "here", ExternalURL: "http://curfew.example",
		Log: zap.New(core), Registerer: s.registry,
	})
	require.NoError(t, err)
	s.outboxes[0].sink.(*webhook).client.Transport = s.receiver
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

func (s setup) metric(t *testing.T, name, result string) (sum float64) {
	t.Helper()
	families, err := s.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == name && labels["sink"] == "webhook" && labels["result"] == result {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func missed(queue string, n int64) Event {
	return Event{
		Kind: DeadlineMissed, VHost: "/", Queue: queue, Action: "dropped",
		Tally: Tally{Count: n, FirstDeadlineAt: 1_000, LastDeadlineAt: 2_500, WorstMillis: 40},
	}
}

func TestStormIsAFewPostsWithCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t)
		for i := range int64(1_000_000) {
			var tally Tally
			tally.Add(10_000+i, i%50)
			s.Record(Event{Kind: DeadlineMissed, VHost: "/", Queue: "orders", Action: "dead_lettered", Tally: tally})
			if i%10_000 == 0 {
				time.Sleep(50 * time.Millisecond) // five seconds in all
			}
		}
		time.Sleep(10 * time.Minute)
		posts := s.receiver.got()
		require.Len(t, posts, 3, "the first second, the rest, resolved")
		require.Equal(t, []string{"firing", "firing", "resolved"},
			[]string{posts[0].Status, posts[1].Status, posts[2].Status})

		first := posts[0]
		require.Equal(t, "4", first.Version)
		require.Equal(t, map[string]string{"alertname": "CurfewDeadlineMissed", "vhost": "/",
			"queue": "orders", "action": "dead_lettered"}, first.GroupLabels)
		require.Equal(t, `{}:{action="dead_lettered", alertname="CurfewDeadlineMissed", queue="orders", vhost="/"}`, first.GroupKey)
		require.Equal(t, "here", first.CommonLabels["instance"])
		require.Equal(t, "http://curfew.example", first.ExternalURL)
		require.Len(t, first.Alerts, 1)
		a := first.Alerts[0]
		require.Equal(t, "warning", a.Labels["severity"])
		require.Equal(t, "1970-01-01T00:00:10.000Z", a.Annotations["first_deadline"])
		require.Equal(t, "49ms", a.Annotations["worst_lateness"])
		require.True(t, a.EndsAt.IsZero())
		require.Equal(t, a.StartsAt.Add(1*time.Second+2*time.Minute).Unix(), posts[2].Alerts[0].EndsAt.Unix())
		require.Equal(t, a.Fingerprint, posts[2].Alerts[0].Fingerprint)

		require.Len(t, s.log.FilterField(zap.String("event", "deadline_missed")).All(), 3)
		total := int64(0)
		for _, line := range s.log.All() {
			if n, ok := line.ContextMap()["count"].(int64); ok {
				total += n
			}
		}
		require.Equal(t, int64(1_000_000), total)
	})
}

func TestGroupsAreByQueueKindAndAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t)
		s.Record(missed("a", 2))
		s.Record(missed("a", 3))
		s.Record(missed("b", 1))
		e := missed("a", 1)
		e.Kind = DeadlineFiredLate
		s.Record(e)
		s.Record(Event{Kind: DeadlineMissed, Queue: "c"}) // nothing happened
		time.Sleep(2 * time.Second)
		counts := make(map[string]string)
		for _, p := range s.receiver.got() {
			counts[p.GroupLabels["alertname"]+" "+p.GroupLabels["queue"]] = p.Alerts[0].Annotations["count"]
		}
		require.Equal(t, map[string]string{
			"CurfewDeadlineMissed a": "5", "CurfewDeadlineMissed b": "1", "CurfewDeadlineFiredLate a": "1",
		}, counts)
	})
}

func TestDegradedIsToldUntilRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t)
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
		s := run(t)
		for i := range maxGroups + 500 {
			s.Record(missed(strings.Repeat("q", i+1), 1))
		}
		require.LessOrEqual(t, len(s.groups), maxGroups+1)
		s.Degraded("still told")
		time.Sleep(5 * time.Second)
		other := 0
		for _, p := range s.receiver.got() {
			if p.GroupLabels["queue"] == otherQueues {
				require.Equal(t, "500", p.Alerts[0].Annotations["count"])
				other++
			}
		}
		require.Equal(t, 1, other)
	})
}

func TestWebhookIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t)
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
			s := run(t)
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
		s := run(t)
		for range 100 {
			s.receiver.answer(answer{err: errors.New("connection refused")})
		}
		s.Record(missed("a", 1))
		time.Sleep(3 * time.Minute)
		require.LessOrEqual(t, s.receiver.tried(), 2*maxTries)
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
		s := run(t)
		s.receiver.block = make(chan struct{})
		o := s.outboxes[0]
		n := notification{key: key{kind: DeadlineMissed, queue: "q"}}
		o.put(n)
		synctest.Wait() // it is being sent
		for range maxQueued + 25 {
			o.put(n)
		}
		require.Equal(t, float64(maxQueued), s.metric(t, "curfew_alert_queue_length", ""))
		require.Equal(t, 25.0, s.metric(t, "curfew_alert_notifications_total", "dropped"))
		close(s.receiver.block)
		time.Sleep(time.Minute)
		posts := s.receiver.got()
		require.Len(t, posts, maxQueued+2)
		require.Equal(t, "CurfewNotificationsDropped", posts[1].CommonLabels["alertname"])
		require.Equal(t, "25", posts[1].CommonAnnotations["count"])
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
	a.Silent(silence("b", 1))
	a.Heard("b")
}

func TestOptions(t *testing.T) {
	for _, bad := range []string{"hooks.example", "ftp://hooks.example/x", "http://", "http://[::1", "/path"} {
		_, err := New(Options{WebhookURL: bad})
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
