package dashboard

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/monitor"
	"curfew/monitor/alert"
	"curfew/monitor/audit"
)

// fakeBroker has what a test puts in.
type fakeBroker struct {
	mu       sync.Mutex
	users    map[string]User // the password is the name
	state    State
	queues   []QueueDetail
	messages []Message
	changes  []DeadlineChange
	held     int64 // bytes, of 1 GiB
	lost     bool  // messages are gone when it comes to changing them
}

func (b *fakeBroker) Authenticate(_ context.Context, name, password string, _ netip.Addr) (User, error) {
	u, ok := b.User(name)
	switch {
	case name == "nobody" && password == name:
		return User{}, ErrForbidden
	case !ok || password != name:
		return User{}, ErrLogin
	}
	return u, nil
}

func (b *fakeBroker) User(name string) (User, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u, ok := b.users[name]
	return u, ok
}

func (b *fakeBroker) Hold(_ string, bytes int64) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+bytes > 1<<30 {
		return func() {}, errors.New("no memory")
	}
	b.held += bytes
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.held -= bytes
	}, nil
}

func (b *fakeBroker) setUser(name string, u User) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.users[name] = u
}

func (b *fakeBroker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

func (b *fakeBroker) Queues() (list []Queue) {
	for _, q := range b.queues {
		list = append(list, q.Queue)
	}
	return list
}

func (b *fakeBroker) Queue(vhost, name string) (QueueDetail, bool) {
	for _, q := range b.queues {
		if q.VHost == vhost && q.Name == name {
			return q, true
		}
	}
	return QueueDetail{}, false
}

func (b *fakeBroker) Peek(u User, _, _ string, p Peek) ([]Message, error) {
	if !u.Admin {
		return nil, ErrForbidden
	}
	list := append([]Message(nil), b.messages[min(p.Offset, len(b.messages)):]...)
	list = list[:min(len(list), p.Count)]
	for i := range list {
		list[i].BodyBytes = len(list[i].Body)
		list[i].Body = list[i].Body[:min(len(list[i].Body), p.BodyBytes)]
	}
	return list, nil
}

func (b *fakeBroker) Look(u User, _, _ string, seq uint64) (Message, error) {
	if !u.Admin {
		return Message{}, ErrForbidden
	}
	for _, m := range b.messages {
		if m.Seq == seq {
			return m, nil
		}
	}
	return Message{}, ErrGone
}

func (b *fakeBroker) ChangeDeadline(_ context.Context, _ User, _, _ string, _ uint64, c DeadlineChange) (string, error) {
	b.changes = append(b.changes, c)
	if b.lost {
		return "", ErrGone
	}
	return "rescheduled", nil
}

// fakeMonitor has what a test puts in.
type fakeMonitor struct {
	health    monitor.Health
	forecasts []monitor.Forecast
	deadlines []int64
	lateness  monitor.Lateness
	lately    monitor.Lateness
	missed    []monitor.Miss
}

func (m *fakeMonitor) Health() monitor.Health                        { return m.health }
func (m *fakeMonitor) Forecasts() []monitor.Forecast                 { return m.forecasts }
func (m *fakeMonitor) Lateness() monitor.Lateness                    { return m.lateness }
func (m *fakeMonitor) LatenessWithin(time.Duration) monitor.Lateness { return m.lately }
func (m *fakeMonitor) Missed() []monitor.Miss                        { return m.missed }

func (m *fakeMonitor) Ahead(until []int64, out []int64) []int64 {
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

// fakeLetters has what a test puts in, and keeps what it was told to do.
type fakeLetters struct {
	holders   []Holder
	groups    []Group
	letters   []Letter
	replays   []Replay
	orders    []ReplayOrder
	filters   []LetterFilter
	cancelled []string
	deleted   int
	imported  int
	lines     string
	draft     Draft
	sent      []Draft
}

func (l *fakeLetters) Holders() []Holder { return l.holders }

func (l *fakeLetters) Replays(u User) (list []Replay) {
	for _, r := range l.replays {
		if u.Admin || r.User == u.Name {
			list = append(list, r)
		}
	}
	return list
}

func (l *fakeLetters) Groups(_ context.Context, u User, _, _ string, _ LetterFilter) ([]Group, error) {
	if !u.Admin {
		return nil, ErrForbidden
	}
	return l.groups, nil
}

func (l *fakeLetters) Search(_ context.Context, _ User, _, _ string, f LetterFilter, after uint64, count, _ int) ([]Letter, uint64, error) {
	l.filters = append(l.filters, f)
	list := l.letters[min(int(after), len(l.letters)):]
	if len(list) > count {
		return list[:count], after + uint64(count), nil
	}
	return list, 0, nil
}

func (l *fakeLetters) Purge(_ context.Context, _ User, _, _ string, f LetterFilter, confirmed int) (int, bool, error) {
	l.filters = append(l.filters, f)
	if confirmed != len(l.letters) {
		return len(l.letters), false, nil
	}
	l.deleted, l.letters = confirmed, nil
	return confirmed, true, nil
}

func (l *fakeLetters) Export(_ context.Context, u User, _, _ string, f LetterFilter, w io.Writer) error {
	if !u.Admin {
		return ErrForbidden
	}
	l.filters = append(l.filters, f)
	_, err := io.WriteString(w, l.lines)
	return err
}

func (l *fakeLetters) Import(_ context.Context, _ User, _, _ string, r io.Reader) (int, error) {
	n := 0
	lines := bufio.NewReader(r)
	for {
		switch _, err := lines.ReadSlice('\n'); err {
		case nil:
			n++
		case io.EOF:
			l.imported += n
			return n, nil
		case bufio.ErrBufferFull:
		default:
			return n, err
		}
	}
}

func (l *fakeLetters) Draft(u User, _, _ string, seq uint64) (Draft, error) {
	switch {
	case !u.Admin:
		return Draft{}, ErrForbidden
	case seq >= uint64(len(l.letters)):
		return Draft{}, ErrGone
	}
	return l.draft, nil
}

func (l *fakeLetters) Resend(_ context.Context, _ User, _, _ string, _ uint64, d Draft) (string, error) {
	if d.RoutingKey == "nowhere" {
		return "unroutable", nil
	}
	l.sent = append(l.sent, d)
	return "", nil
}

func (l *fakeLetters) Replay(_ context.Context, u User, o ReplayOrder) (Replay, error) {
	l.orders = append(l.orders, o)
	return Replay{ID: "r1", User: u.Name, State: "done", Scanned: 5, Matched: 4, Replayed: 3, Left: []Pair{{"no_time_left", "1"}}}, nil
}

func (l *fakeLetters) CancelReplay(u User, id string) error {
	for _, r := range l.Replays(u) {
		if r.ID == id {
			l.cancelled = append(l.cancelled, id)
			return nil
		}
	}
	return ErrGone
}

// site is a dashboard that a test asks.
type site struct {
	*testing.T
	broker  *fakeBroker
	monitor *fakeMonitor
	letters *fakeLetters
	alerts  *alert.Alerts
	d       *Dashboard
	url     string
	client  *http.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	alerts, err := alert.New(alert.Options{})
	require.NoError(t, err)
	s := &site{
		T: t, alerts: alerts, letters: &fakeLetters{}, monitor: &fakeMonitor{health: monitor.Health{Schedule: monitor.ScheduleEmbedded, Since: time.Now()}},
		broker: &fakeBroker{users: map[string]User{"root": {Name: "root", Admin: true, Stamp: "1"}, "eye": {Name: "eye", Stamp: "1"}}, state: State{Now: 1_000_000, Started: time.Now()}},
	}
	s.d, err = New(Options{Broker: s.broker, Monitor: s.monitor, Alerts: alerts, DeadLetters: s.letters, Instance: "test", Version: "1", Every: time.Millisecond})
	require.NoError(t, err)
	server := httptest.NewServer(s.d.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(s.d.Close)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	s.url, s.client = server.URL, &http.Client{Jar: jar}
	return s
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
	return answer{resp.StatusCode, resp.Header, resp.Request.URL.Path, string(body)}
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
