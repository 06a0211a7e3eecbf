package incident

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// taker keeps what is posted to it, by one at a time.
type taker struct {
	url      string
	code     int // of answers; 0: 200
	answer   string
	requests []*http.Request
	bodies   [][]byte
}

func startTaker(t *testing.T) *taker {
	t.Helper()
	k := &taker{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		k.requests, k.bodies = append(k.requests, r), append(k.bodies, body)
		w.WriteHeader(cmp.Or(k.code, http.StatusOK))
		_, _ = io.WriteString(w, k.answer)
	}))
	t.Cleanup(server.Close)
	k.url = server.URL
	return k
}

// hostile is an alert about a queue with a name that people should not give, of a Curfew that people can reach.
func hostile() *notice {
	at := time.Unix(1_800_000_000, 0)
	from := source{"here", "https://curfew.example", "https://runbooks.example/"}
	queue := fmt.Sprintf("<!channel> & `%d` %s ü\"\n", 7, strings.Repeat("q", 200))
	return &notice{
		Incident: Incident{
			ID: "1", Condition: "deadline_missed", Alertname: "CurfewDeadlineMissed", Level: Warning, Count: 8, Toll: 8, Queues: 1, Since: at,
			Summary: "Messages expire unconsumed: " + name(queue) + ": 8 messages expired", Worst: []Affected{{VHost: "/", Queue: queue, Count: 8}}, Command: "curfew queue show x <!channel>",
			Runbook: from.runbook("CurfewDeadlineMissed"),
		},
		source: from, rule: everything, names: map[string]string{"alertname": "CurfewDeadlineMissed", "vhost": "/", "queue": queue}, worst: Finding{Action: "dropped"}, at: at, what: "begun",
	}
}

func over(a *notice) *notice {
	ended := *a
	ended.at = a.at.Add(time.Minute)
	ended.Ended, ended.what = &ended.at, "over"
	return &ended
}

// send has every sink of o send n. Connections that their clients keep end with the servers.
func send(t *testing.T, o Options, n *notice) {
	t.Helper()
	a, err := New(o)
	require.NoError(t, err)
	for _, c := range a.delivery.outboxes {
		require.NoError(t, c.send(t.Context(), n))
	}
}

// TestRunbookAddresses are those of the files in deploy/runbooks, as Prometheus's rules have them.
func TestRunbookAddresses(t *testing.T) {
	for _, base := range []string{"https://wiki/runbooks", "https://wiki/runbooks/"} {
		require.Equal(t, "https://wiki/runbooks/CurfewDeadlineMissed.md", source{runbooksURL: base}.runbook("CurfewDeadlineMissed"))
	}
	require.Equal(t, "https://wiki/CurfewDiskSilent.md", source{runbooksURL: "https://wiki"}.runbook("CurfewFsyncSlow"), "one cause, one page")
	require.Empty(t, source{}.runbook("CurfewDeadlineMissed"))
}

// published is an exchange that keeps what it is given.
type published struct {
	list []Publication
	err  error
}

func (p *published) publish(_ context.Context, e Publication) error {
	p.list = append(p.list, e)
	return p.err
}

// TestExchangeTakesEvents: each alert is a message that can be bound to by event, virtual host
// and queue.
func TestExchangeTakesEvents(t *testing.T) {
	x := &published{}
	send(t, Options{Publish: x.publish, URLs: []string{eventsURL}, Instance: "here"}, hostile())
	require.Len(t, x.list, 1)
	p := x.list[0]
	require.LessOrEqual(t, len(p.RoutingKey), 255)
	require.True(t, strings.HasPrefix(p.RoutingKey, "deadline_missed./.<!channel>"), p.RoutingKey)
	require.NotEmpty(t, p.MessageID)
	require.Equal(t, "application/json", p.ContentType)
	var e event
	require.NoError(t, json.Unmarshal(p.Body, &e))
	require.Equal(t, "dropped", e.Action)
	require.Equal(t, "here", e.Instance)

	x.err = errors.New("full")
	a, err := New(Options{Publish: x.publish, URLs: []string{eventsURL}})
	require.NoError(t, err)
	require.ErrorContains(t, a.delivery.outboxes[0].send(t.Context(), hostile()), "full")
	a, err = New(Options{URLs: []string{eventsURL}})
	require.NoError(t, err)
	require.ErrorContains(t, a.FileError(), "no exchange")
	require.Empty(t, a.delivery.outboxes)
}

// managerPost is one request an Alertmanager got.
type managerPost struct {
	at     time.Time
	alerts []alert
}

// managed is an Alertmanager without a network.
type managed struct {
	mu    sync.Mutex
	posts []managerPost
	err   error
}

func (m *managed) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *managed) got() []managerPost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.posts
}

func (m *managed) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	var list []alert
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		return nil, err
	}
	m.posts = append(m.posts, managerPost{time.Now(), list})
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// state says of each alert in the last post whether it fires then.
func (m *managed) state() map[string]bool {
	posts := m.got()
	last := posts[len(posts)-1]
	fires := make(map[string]bool)
	for _, a := range last.alerts {
		fires[a.Labels["alertname"]+" "+a.Labels["queue"]] = a.EndsAt.After(last.at)
	}
	return fires
}

// TestAlertmanagerIsToldWhatIsBack: what fires again soon after it was over is not ended by what is still sent of that.
func TestAlertmanagerIsToldWhatIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &managed{}
		s := prepare(t, func(o *Options) { o.URLs = []string{"alertmanager+http://am.example/"} })
		s.delivery.outboxes[0].sink.(*manager).client.Transport = m
		s.start(t)
		for range 3 {
			s.Record(missed("a", 3))
			pass(8 * time.Second)
			require.Len(t, s.List(), 1)
			last := m.got()[len(m.got())-1]
			var ends []time.Time
			for _, a := range last.alerts {
				if a.Labels["queue"] == "a" {
					ends = append(ends, a.EndsAt)
				}
			}
			require.Len(t, ends, 1)
			require.True(t, ends[0].After(last.at))
			pass(90 * time.Second)
			require.Empty(t, s.List())
		}
	})
}

// TestAlertmanagerIsSentAgain: what fires, every minute with an end ahead; what is over,
// for five minutes; the watchdog, for as long as nothing hangs.
func TestAlertmanagerIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		m := &managed{}
		s := prepare(t, func(o *Options) {
			o.URLs = []string{"alertmanager+http://am.example/prefix/"}
			o.Stalled = func() []string { return map[bool][]string{true: {"loop fire"}}[hangs.Load()] }
		})
		s.delivery.outboxes[0].sink.(*manager).client.Transport = m
		s.start(t)
		require.Equal(t, "http://am.example/prefix/api/v2/alerts", s.delivery.outboxes[0].sink.(*manager).url)
		s.Record(missed("a", 3))
		pass(6 * time.Second)
		require.Equal(t, map[string]bool{"CurfewWatchdog ": true, "CurfewDeadlineMissed a": true}, m.state())
		for range 10 {
			pass(30 * time.Second)
			s.Record(missed("a", 1))
		}
		require.GreaterOrEqual(t, len(m.got()), 6, "every minute")
		require.LessOrEqual(t, len(m.got()), 8)
		for _, p := range m.got() {
			for _, a := range p.alerts {
				require.Equal(t, p.at.Add(4*time.Minute).Unix(), a.EndsAt.Unix())
				require.Equal(t, "here", a.Labels["instance"])
			}
		}
		pass(3 * time.Minute)
		require.Equal(t, map[string]bool{"CurfewWatchdog ": true, "CurfewDeadlineMissed a": false}, m.state())
		for _, a := range m.got()[len(m.got())-1].alerts {
			require.True(t, a.Labels["alertname"] == "CurfewWatchdog" || a.EndsAt.Equal(*s.View().Over[0].Ended), "it ends when it does everywhere: %s", a.EndsAt)
		}
		pass(8 * time.Minute)
		require.Equal(t, map[string]bool{"CurfewWatchdog ": true}, m.state(), "it has been told often enough")

		m.fail(errors.New("connection refused"))
		s.degraded("why")
		pass(10 * time.Minute)
		require.Len(t, s.wrong(), 2)
		m.fail(nil)
		pass(2 * time.Minute)
		require.True(t, m.state()["CurfewScheduleDegraded "], "made up for")
		require.Len(t, s.wrong(), 1)
		hangs.Store(true)
		pass(2 * time.Minute)
		require.False(t, m.state()["CurfewWatchdog "])
	})
}
