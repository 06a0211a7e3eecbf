package dashboard

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/server"
	"curfew/monitor"
	"curfew/monitor/audit"
	"curfew/monitor/changes"
	"curfew/monitor/incident"
)

// siteNow is the time of the site's broker, Unix ms.
const siteNow = 900_000

// gibibyte is the memory limit of the site's broker.
const gibibyte = 1 << 30

// fakeMonitor has what a test puts in.
type fakeMonitor struct {
	health    monitor.Health
	forecasts []deadline.Forecast
	deadlines []int64
	lateness  monitor.Lateness
	recently  monitor.Lateness
	expiries  []monitor.RecentExpiry
	shares    func(from int64) monitor.Share // nil: there is no forecast
}

func (m *fakeMonitor) Health() monitor.Health                        { return m.health }
func (m *fakeMonitor) Lateness() monitor.Lateness                    { return m.lateness }
func (m *fakeMonitor) LatenessWithin(time.Duration) monitor.Lateness { return m.recently }
func (m *fakeMonitor) RecentExpiries() []monitor.RecentExpiry        { return m.expiries }

func (m *fakeMonitor) Shares(at []int64, out []monitor.Share) []monitor.Share {
	if m.shares == nil {
		return out
	}
	for i := range len(at) - 1 {
		out = append(out, m.shares(at[i]))
	}
	return out
}

func (m *fakeMonitor) PendingBefore(until []int64, out []int64) []int64 {
	for _, at := range until {
		n := int64(0)
		for _, d := range m.deadlines {
			if d <= at {
				n++
			}
		}
		out = append(out, n)
	}
	return out
}

// site is a dashboard of a broker, which a test asks.
type site struct {
	*testing.T
	b         *broker.Broker
	memory    atomic.Int64 // in use
	replays   string       // the directory
	dataDir   string       // as it is shown
	monitor   *fakeMonitor
	incidents *incident.Incidents
	wrong     func(*incident.State) // what is wrong; nil: nothing
	hour      deadline.Hour         // what expired
	server    *server.Server
	d         *Dashboard
	url       string
	client    *http.Client
}

// newSite has the users root, an administrator who may do everything; eye, who monitors and has no permissions; and nobody, who may not look.
// The password of each is the name.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, replays: t.TempDir(), hour: deadline.Hour{}, monitor: &fakeMonitor{health: monitor.Health{Schedule: monitor.ScheduleEmbedded, Since: time.Now()}}}
	now := func() int64 { return siteNow * int64(time.Millisecond) }
	var err error
	s.b, err = broker.New(broker.Options{Clock: now, MemoryLimit: gibibyte, MemoryInUse: s.memory.Load})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.b.Close()) })
	s.user("root", access.Administrator, "/")
	s.user("eye", access.Monitoring)
	s.user("nobody", "")
	s.incidents, err = incident.New(incident.Options{Look: func(now *incident.State) {
		now.Blocked, _ = s.b.Alarm.Reason()
		now.Forecasts = s.monitor.forecasts
		if s.wrong != nil {
			s.wrong(now)
		}
	}, Hour: func(tally func()) deadline.Hour {
		tally()
		return s.hour
	}})
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	s.client = &http.Client{Jar: jar}
	recorded := changes.New(changes.Options{Incidents: s.incidents, Recorder: operate.NewRecorder(operate.RecorderOptions{})})
	s.d = &Dashboard{Options: Options{Users: s.b.Accounts, Changes: recorded, Monitor: s.monitor, Incidents: s.incidents, Instance: "test", Version: "1", Every: time.Millisecond}}
	s.operates()
	return s
}

// foresee makes these the forecasts, and waits until they are shown.
func (s *site) foresee(list ...deadline.Forecast) {
	s.Helper()
	s.monitor.forecasts = list
	require.Eventually(s, func() bool { return slices.Equal(s.d.Incidents.View().Forecasts, list) }, time.Minute, 10*time.Millisecond)
}

// operates makes the operations, with the replays that are in the directory. To be called before logIn.
func (s *site) operates() {
	s.Helper()
	s.server = server.New(server.Options{Broker: s.b})
	ops := operate.New(operate.Options{Broker: s.b, Server: s.server, DataDir: s.dataDir})
	require.NoError(s, ops.OpenReplays(s.replays))
	s.Cleanup(ops.Close)
	s.with(func(o *Options) { o.Operations = ops })
}

// user makes somebody whose password is the name, with all permissions in the virtual hosts.
func (s *site) user(name, tag string, vhosts ...string) {
	s.Helper()
	u := access.User{Name: name}
	if tag != "" {
		u.Tags = []string{tag}
	}
	u.SetPassword(name)
	require.NoError(s, s.b.Accounts.PutUser(u))
	for _, vhost := range vhosts {
		require.NoError(s, s.b.Accounts.SetPermission(access.Permission{User: name, VHost: vhost, Configure: ".*", Read: ".*", Write: ".*"}))
	}
}

func (s *site) permit(user, vhost, read, write string) {
	s.Helper()
	require.NoError(s, s.b.Accounts.SetPermission(access.Permission{User: user, VHost: vhost, Read: read, Write: write}))
}

// queue declares one.
func (s *site) queue(vhost, name string, args amqp.Table) *broker.Queue {
	s.Helper()
	vh, ok := s.b.VHost(vhost)
	require.True(s, ok)
	q, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true, Args: args})
	require.NoError(s, err)
	return q
}

// publish puts a message into a queue.
func (s *site) publish(q *broker.Queue, p amqp.Properties, body string) {
	s.Helper()
	vh, err := s.b.VHostOf(q)
	require.NoError(s, err)
	publisher := vh.OwnPublisher()
	publisher.ForTool = true // with the history of a dead letter, if it has one
	routed, err := publisher.Add(&broker.Publication{RoutingKey: []byte(q.Name), Properties: p.Append(nil), Body: []byte(body)})
	require.NoError(s, err)
	require.True(s, routed)
	publisher.Flush(nil)
}

// died is a header of a message that expired in a queue.
func died(queue, reason, exchange string) amqp.Table {
	return amqp.Table{"x-death": []any{amqp.Table{
		"queue": queue, "reason": reason, "exchange": exchange, "count": int64(2), "time": amqp.Timestamp(800), "routing-keys": []any{queue},
	}}}
}

// dead puts n dead letters into the queue dlq, which is made for them; a replay would bring them to q.
func (s *site) dead(n int) *broker.Queue {
	s.Helper()
	s.queue("/", "q", nil)
	dlq := s.queue("/", "dlq", nil)
	for range n {
		s.publish(dlq, amqp.Properties{Headers: died("q", "expired", ""), Has: amqp.HasHeaders}, "abc")
	}
	return dlq
}

// standing are the messages of a queue.
func (s *site) standing(q *broker.Queue) []broker.Browsed {
	s.Helper()
	found, err := q.Messages.Browse(broker.Browse{Count: 1 << 20, BodyBytes: -1})
	require.NoError(s, err)
	return found
}

// kept puts the file of a replay where the next operates finds it.
func (s *site) kept(id, text string) {
	s.Helper()
	require.NoError(s, os.WriteFile(filepath.Join(s.replays, id+".json"), []byte(text), 0o600))
}

// audited gives the site an audit with these records. To be called before logIn.
func (s *site) audited(records ...audit.Record) {
	s.Helper()
	log, err := audit.Open(audit.Options{Dir: s.TempDir()})
	require.NoError(s, err)
	log.Add(records)
	ended, end := context.WithCancel(s.Context())
	end()
	require.NoError(s, log.Run(ended)) // writes what waits
	s.with(func(o *Options) { o.Audit = log })
}

// dial connects a client as root, whose connection has the name, to a virtual host. It holds two messages of each queue.
func (s *site) dial(name, vhost string, queues ...string) *amqp091.Connection {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(ctx, l) }()
	s.Cleanup(func() { stop(); require.NoError(s, <-ended) })
	c, err := amqp091.DialConfig("amqp://root:root@"+l.Addr().String(), amqp091.Config{Vhost: vhost, Properties: amqp091.Table{"connection_name": name, "product": name, "version": name}})
	require.NoError(s, err)
	s.Cleanup(func() { c.Close() })
	ch, err := c.Channel()
	require.NoError(s, err)
	require.NoError(s, ch.Qos(2, 0, false))
	for _, queue := range queues {
		got, err := ch.Consume(queue, name, false, false, false, false, nil)
		require.NoError(s, err)
		<-got
		<-got
	}
	return c
}

// with gives the site other options. To be called before logIn.
func (s *site) with(change func(*Options)) {
	s.Helper()
	o := s.d.Options
	change(&o)
	var err error
	s.d, err = New(o)
	require.NoError(s, err)
	server := httptest.NewServer(s.d.Handler())
	s.Cleanup(server.Close)
	s.Cleanup(s.d.Close)
	s.url = server.URL
}

func (s *site) logIn(name string) *site {
	s.Helper()
	resp := s.post("/login", url.Values{"name": {name}, "password": {name}, "to": {"/"}})
	require.Equal(s, http.StatusOK, resp.status, "after the redirect")
	return s
}

type answer struct {
	status int
	header http.Header
	path   string // after redirects
	body   string
}

func (s *site) do(r *http.Request) answer {
	s.Helper()
	resp, err := s.client.Do(r)
	require.NoError(s, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	return answer{resp.StatusCode, resp.Header, resp.Request.URL.Path, strings.ReplaceAll(string(body), "<wbr>", "")} // only where lines end
}

func (s *site) get(path string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.url+path, http.NoBody)
	require.NoError(s, err)
	return s.do(r)
}

func (s *site) post(path string, form url.Values, headers ...string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	require.NoError(s, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return s.do(r)
}

var tokenPattern = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token is what a change takes, from a page.
func (s *site) token(path string) string {
	s.Helper()
	found := tokenPattern.FindStringSubmatch(s.get(path).body)
	require.NotNil(s, found, "no token in %s", path)
	return found[1]
}
