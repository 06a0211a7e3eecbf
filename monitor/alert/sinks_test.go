package alert

import (
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
	"unicode/utf8"

	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/stretchr/testify/require"
)

// taker keeps what is posted to it.
type taker struct {
	url      string
	requests []*http.Request
	bodies   [][]byte
}

func startTaker(t *testing.T) *taker {
	t.Helper()
	k := &taker{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		k.requests, k.bodies = append(k.requests, r), append(k.bodies, body)
	}))
	t.Cleanup(server.Close)
	k.url = server.URL
	return k
}

// hostile is a group with the names that people should not give, and more queues than
// are shown.
func hostile() *notification {
	n := newNotification(&rule{name: "default", everywhere: true}, groupKey{rule: "default", kind: DeadlineMissed}, time.Unix(1_800_000_000, 0))
	for i := range 60 {
		n.add(alert{
			key: key{kind: DeadlineMissed, vhost: "/", queue: fmt.Sprintf("<!channel> & `%d` %s ü\"\n", i, strings.Repeat("q", 200)), action: "dropped"}, severity: "warning",
			Tally: Tally{Count: int64(i + 1), FirstDeadlineAt: 1_000, LastDeadlineAt: 2_000, WorstMillis: 30}, startsAt: n.at, fresh: i%2 == 0,
		})
	}
	n.close()
	return n
}

func over(n *notification) *notification {
	ended := newNotification(n.rule, n.key, n.at.Add(time.Minute))
	for _, a := range n.alerts {
		a.endsAt = ended.at
		ended.add(a)
	}
	ended.close()
	return ended
}

// send has every sink of o send n.
func send(t *testing.T, o Options, n *notification) {
	t.Helper()
	a, err := New(o)
	require.NoError(t, err)
	for _, c := range a.channels {
		require.NoError(t, c.send(t.Context(), n))
		if box, ok := c.(*outbox); ok {
			if p, ok := box.sink.(interface{ close() }); ok {
				p.close()
			}
		}
	}
}

func (p *poster) close() { p.client.CloseIdleConnections() }

// TestSlackTakesIt holds messages to Slack's limits: Block Kit's block, header, section,
// context and text objects, and an incoming webhook's payload.
func TestSlackTakesIt(t *testing.T) {
	k := startTaker(t)
	o := Options{SlackURL: k.url, Instance: "here", ExternalURL: "https://curfew.example", RunbookBase: "https://runbooks.example/"}
	send(t, o, hostile())
	send(t, o, over(hostile()))
	for i, body := range k.bodies {
		require.Equal(t, "application/json", k.requests[i].Header.Get("Content-Type"))
		var m slackMessage
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&m))
		require.NotEmpty(t, m.Text)
		require.LessOrEqual(t, utf8.RuneCountInString(m.Text), 40_000)
		require.Len(t, m.Attachments, 1)
		require.Regexp(t, "^#[0-9a-f]{6}$", m.Attachments[0].Color)
		require.LessOrEqual(t, len(m.Attachments[0].Blocks), 50)
		for _, b := range m.Attachments[0].Blocks {
			checkBlock(t, b)
		}
		require.NotContains(t, string(body), "<!channel>", "a queue's name mentions nobody")
	}
	require.Contains(t, string(k.bodies[0]), "FIRING CurfewDeadlineMissed")
	require.Contains(t, string(k.bodies[0]), "and 55 queues more")
	require.Contains(t, string(k.bodies[1]), "RESOLVED CurfewDeadlineMissed")
}

// TestRunbookAddresses are those of the files in deploy/runbooks, as Prometheus's rules have them; a test of a sink
// has no page.
func TestRunbookAddresses(t *testing.T) {
	for _, base := range []string{"https://wiki/runbooks", "https://wiki/runbooks/"} {
		require.Equal(t, "https://wiki/runbooks/CurfewDeadlineMissed.md", source{runbookBase: base}.runbook(DeadlineMissed))
		require.Empty(t, source{runbookBase: base}.runbook(Test))
	}
	require.Empty(t, source{}.runbook(DeadlineMissed))
}

func checkBlock(t *testing.T, b slackBlock) {
	t.Helper()
	length := func(x slackText, most int) {
		require.Contains(t, []string{"plain_text", "mrkdwn"}, x.Type)
		require.NotEmpty(t, x.Text)
		require.LessOrEqual(t, utf8.RuneCountInString(x.Text), most)
	}
	switch b.Type {
	case "header":
		require.Equal(t, "plain_text", b.Text.Type)
		length(*b.Text, 150)
	case "section":
		require.True(t, (b.Text != nil) != (b.Fields != nil))
		if b.Text != nil {
			length(*b.Text, 3000)
		}
		require.LessOrEqual(t, len(b.Fields), 10)
		for _, f := range b.Fields {
			length(f, 2000)
		}
	case "context":
		require.LessOrEqual(t, len(b.Elements), 10)
		for _, e := range b.Elements {
			length(e, 2000)
		}
	default:
		t.Errorf("a block of type %q", b.Type)
	}
}

// TestPagerDutyTakesIt holds events to the schema of the Events API v2.
func TestPagerDutyTakesIt(t *testing.T) {
	k := startTaker(t)
	o := Options{PagerDutyKey: strings.Repeat("k", 32), PagerDutyURL: k.url, Instance: strings.Repeat("i", 300), RunbookBase: "https://runbooks.example/"}
	send(t, o, hostile())
	send(t, o, over(hostile()))
	var dedup []string
	for i, body := range k.bodies {
		var e struct {
			RoutingKey  string `json:"routing_key"`
			EventAction string `json:"event_action"`
			DedupKey    string `json:"dedup_key"`
			Payload     *struct {
				Summary, Source, Severity, Timestamp, Component, Group, Class string
				CustomDetails                                                 map[string]any `json:"custom_details"`
			}
			Client    string
			ClientURL string `json:"client_url"`
			Links     []struct{ Href, Text string }
		}
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&e))
		require.Len(t, e.RoutingKey, 32)
		require.LessOrEqual(t, len(e.DedupKey), 255)
		dedup = append(dedup, e.DedupKey)
		require.Equal(t, []string{"trigger", "resolve"}[i], e.EventAction)
		if e.EventAction == "resolve" {
			continue
		}
		require.NotEmpty(t, e.Payload.Summary)
		require.LessOrEqual(t, utf8.RuneCountInString(e.Payload.Summary), 1024)
		require.NotEmpty(t, e.Payload.Source)
		require.Contains(t, []string{"critical", "error", "warning", "info"}, e.Payload.Severity)
		_, err := time.Parse(time.RFC3339Nano, e.Payload.Timestamp)
		require.NoError(t, err)
		require.Equal(t, "deadline_missed", e.Payload.Class)
		require.Equal(t, "1830", e.Payload.CustomDetails["count"])
		require.Len(t, e.Links, 1)
		require.Equal(t, "https://runbooks.example/CurfewDeadlineMissed.md", e.Links[0].Href)
		require.LessOrEqual(t, len(body), 512<<10)
	}
	require.Equal(t, dedup[0], dedup[1], "what is over resolves what was triggered")
}

// TestCloudEventsTakesIt: the CloudEvents SDK reads both content modes as the same,
// valid event.
func TestCloudEventsTakesIt(t *testing.T) {
	n := hostile()
	n.alerts, n.firing, n.total = n.alerts[:1], 1, n.alerts[0].Tally
	for _, binaryMode := range []bool{false, true} {
		k := startTaker(t)
		send(t, Options{CloudEventsURL: k.url, CloudEventsBinary: binaryMode, Instance: "here-1"}, n)
		got := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(k.bodies[0])))
		got.Header = k.requests[0].Header
		m := cehttp.NewMessageFromHttpRequest(got)
		require.Equal(t, binaryMode, m.ReadEncoding() == binding.EncodingBinary)
		e, err := binding.ToEvent(context.Background(), m)
		require.NoError(t, err)
		require.NoError(t, e.Validate())
		require.Equal(t, "1.0", e.SpecVersion())
		require.Equal(t, "io.curfew.deadline.missed.v1", e.Type())
		require.Equal(t, "/curfew/here-1", e.Source())
		require.Equal(t, "application/json", e.DataContentType())
		require.Equal(t, n.at.UTC(), e.Time().UTC())
		require.Equal(t, "warning", e.Extensions()["severitytext"])
		require.EqualValues(t, "13", fmt.Sprint(e.Extensions()["severitynumber"]))
		var d eventData
		require.NoError(t, e.DataAs(&d))
		require.Equal(t, n.alerts[0].queue, d.Queue)
		require.Equal(t, "firing", d.Status)
		require.EqualValues(t, 60, d.Count)
	}
}

// published is an exchange that keeps what it is given.
type published struct {
	list []Publication
	err  error
}

func (p *published) Publish(_ context.Context, e Publication) error {
	p.list = append(p.list, e)
	return p.err
}

// TestExchangeTakesNews: each alert there is news of is a message that can be bound to
// by event, virtual host and queue.
func TestExchangeTakesNews(t *testing.T) {
	for _, format := range []string{"json", "cloudevents"} {
		x := &published{}
		send(t, Options{Exchange: x, EventFormat: format}, hostile())
		require.Len(t, x.list, 30)
		p := x.list[0]
		require.LessOrEqual(t, len(p.RoutingKey), 255)
		require.True(t, strings.HasPrefix(p.RoutingKey, "deadline_missed./.<!channel>"), p.RoutingKey)
		require.NotEmpty(t, p.MessageID)
		if format == "json" {
			var d eventData
			require.NoError(t, json.Unmarshal(p.Body, &d))
			require.Equal(t, "dropped", d.Action)
		} else {
			var e cloudEvent
			require.NoError(t, json.Unmarshal(p.Body, &e))
			require.Equal(t, "io.curfew.deadline.missed.v1", e.Type)
		}
	}
	x := &published{err: errors.New("full")}
	a, err := New(Options{Exchange: x})
	require.NoError(t, err)
	require.ErrorContains(t, a.channels[0].send(t.Context(), hostile()), "full")
}

// managerPost is one request an Alertmanager got.
type managerPost struct {
	at     time.Time
	alerts []postedAlert
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
	var list []postedAlert
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

// TestAlertmanagerIsSentAgain: what fires, every minute with an end ahead; what is over,
// for five minutes; the watchdog, for as long as nothing hangs.
func TestAlertmanagerIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		m := &managed{}
		s := prepare(t, func(o *Options) {
			o.WebhookURL, o.AlertmanagerURLs = "", []string{"http://am.example/prefix/"}
			o.Stalled = func() []string { return map[bool][]string{true: {"loop fire"}}[hangs.Load()] }
		})
		s.channels[0].(*manager).client.Transport = m
		s.start(t)
		require.Equal(t, "http://am.example/prefix/api/v2/alerts", s.channels[0].(*manager).url)
		s.Record(missed("a", 3))
		time.Sleep(2 * time.Second)
		require.Equal(t, map[string]bool{"CurfewWatchdog ": true, "CurfewDeadlineMissed a": true}, m.state())
		for range 10 {
			time.Sleep(30 * time.Second)
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
		time.Sleep(3 * time.Minute)
		require.Equal(t, map[string]bool{"CurfewWatchdog ": true, "CurfewDeadlineMissed a": false}, m.state())
		time.Sleep(8 * time.Minute)
		require.Equal(t, map[string]bool{"CurfewWatchdog ": true}, m.state(), "it has been told often enough")

		m.fail(errors.New("connection refused"))
		s.Degraded("why")
		time.Sleep(10 * time.Minute)
		require.Len(t, s.Health(), 1)
		m.fail(nil)
		time.Sleep(2 * time.Minute)
		require.True(t, m.state()["CurfewScheduleDegraded "], "made up for")
		require.Empty(t, s.Health())
		hangs.Store(true)
		time.Sleep(2 * time.Minute)
		require.False(t, m.state()["CurfewWatchdog "])
	})
}

// TestSummaries are what a person reads first.
func TestSummaries(t *testing.T) {
	made := func(kind Kind, queues int, count int64, ended bool) *notification {
		n := newNotification(everything, groupKey{kind: kind}, time.Unix(1, 0))
		for i := range queues {
			a := alert{key: key{kind: kind, vhost: "/", queue: fmt.Sprint("q", i)}, Tally: Tally{Count: count}, fresh: true}
			if ended {
				a.endsAt = time.Unix(1, 0)
			}
			n.add(a)
		}
		n.close()
		return n
	}
	of := func(kind Kind, queues int, count int64, ended bool) string {
		return made(kind, queues, count, ended).summary()
	}
	require.Equal(t, `messages expired before they were consumed: 6 in 2 queues, 3 in queue "q0" of vhost "/", 3 in queue "q1" of vhost "/"`, of(DeadlineMissed, 2, 3, false))
	require.Equal(t, `messages expired before they were consumed: over, 6 in 2 queues, 3 in queue "q0" of vhost "/", 3 in queue "q1" of vhost "/"`, of(DeadlineMissed, 2, 3, true))
	require.Contains(t, of(DeadlineMissed, 6, 3, false), `: 18 in 6 queues, most of them 3 in queue "q0" of vhost "/", 3 in`)
	require.Equal(t, `messages will miss their deadlines: over, in 2 queues, queue "q0" of vhost "/", queue "q1" of vhost "/"`, of(AtRisk, 2, 0, true))
	require.Contains(t, of(AtRisk, 6, 0, true), `: over, in 6 queues, among them queue "q0" of vhost "/", queue "q1"`)
	require.Equal(t, "• `q0` of `/`\n• `q1` of `/`", slackTop(made(AtRisk, 2, 0, true)))
	require.Equal(t, "• 3 in `q0` of `/`\n• 3 in `q1` of `/`", slackTop(made(AtRisk, 2, 3, false)))
}
